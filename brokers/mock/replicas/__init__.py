"""The replicas that a broker holds: it leads some, follows others, and maintains the ISRs of those that it leads."""
