"""The part of a bus on Kafka that everybody shares."""
