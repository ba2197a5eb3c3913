"""The wiring: one Structured Streaming query around the rules. Spark is known here only."""
