"""The common parts of gateways of both kinds."""
