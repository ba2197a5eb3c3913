"""Kafka's security protocols, by the numbers that stand for them in requests."""

# Kafka's SecurityProtocol. Programs may register a broker with any name.
PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
