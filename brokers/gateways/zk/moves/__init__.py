"""Moves of a whole cluster: a take-over from its own controller, and the way back."""
