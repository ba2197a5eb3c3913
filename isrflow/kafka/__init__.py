"""The part of a bus on Kafka that the engine and users' programs share."""
