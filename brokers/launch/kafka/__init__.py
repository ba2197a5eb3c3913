"""Real Kafka nodes as processes on this machine: format, start and stop them, and find them again by their folder."""
