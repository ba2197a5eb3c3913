"""Gateways: they join brokers of real Kafka to the engine."""
