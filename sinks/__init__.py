"""What leaves the engine: the decision log and the metrics."""
