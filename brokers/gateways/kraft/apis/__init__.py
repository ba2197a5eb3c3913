"""The requests of brokers and their clients to a controller, API by API."""
