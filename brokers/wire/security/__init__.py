"""The way into a listener that asks for TLS or SASL, as the side that connects."""
