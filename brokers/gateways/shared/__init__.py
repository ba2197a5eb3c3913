"""What gateways of both kinds have in common."""
