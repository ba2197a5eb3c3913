"""Gateways: what makes real Kafka brokers part of a cluster that this engine controls."""
