"""TLS and tokens, as every address that isrflow listens on uses them."""
