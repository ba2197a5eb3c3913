"""The Kafka protocol over TCP, both ways, by kafka-python's schema-driven codec."""
