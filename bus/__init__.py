"""The bus: the ordered log of events, the log of decisions, and the last committed state."""
