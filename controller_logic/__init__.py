"""Verbs: what follows from what. Pure functions, with ``step`` as the one door."""
