"""The requests that gateways of both kinds answer alike, from brokers and their clients."""
