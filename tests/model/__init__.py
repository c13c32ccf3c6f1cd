"""The sending protocol as a small model: searched exhaustively, and held against both real stores."""
