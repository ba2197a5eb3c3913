"""The wiring: one Structured Streaming query around the rules. Only this package knows Spark."""
