"""The answers to clients and other brokers: one small file for each API."""
