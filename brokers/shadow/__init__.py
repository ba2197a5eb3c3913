"""Shadows: the metadata log of a cluster that Kafka's own controllers lead, read and explained."""
