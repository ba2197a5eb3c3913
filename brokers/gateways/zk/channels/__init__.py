"""Requests on their way to brokers, and their answers."""
