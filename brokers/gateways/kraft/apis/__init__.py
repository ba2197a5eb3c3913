"""What brokers and their clients ask of a controller, API by API."""
