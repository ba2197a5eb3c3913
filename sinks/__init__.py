"""What leaves the engine: the decision log, the metrics, and the live page (``web``)."""
