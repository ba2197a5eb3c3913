"""The answers to clients and other brokers."""
