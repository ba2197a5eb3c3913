"""What brokers and clients ask of their controller."""
