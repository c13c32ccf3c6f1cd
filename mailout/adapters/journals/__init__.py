"""Journals as files: what a session did, kept on this machine."""
