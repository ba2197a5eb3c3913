"""The engine over HTTP: metrics, health, and a live page of the cluster."""
