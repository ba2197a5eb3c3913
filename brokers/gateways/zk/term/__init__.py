"""A term: a gateway takes the controller's place, and leads until it loses it."""
