"""Moves of a whole cluster: taken over from its own controller, and handed back to it."""
