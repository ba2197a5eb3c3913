"""The messages that ask a server for its settings."""
