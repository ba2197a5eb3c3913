"""Outward: the decision log and the metrics."""
