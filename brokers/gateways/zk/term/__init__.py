"""A term of a gateway: it takes the controller's place, and leads until it loses it."""
