"""The HTTP stack of every process that serves: metrics and health on one address, protected and bounded."""
