"""Strangers who want to join: asked once by mail, subscribed when they confirm, welcomed once."""
