"""Kafka's metadata log: its topic, its records, and the requests with which it is read."""
