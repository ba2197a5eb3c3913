"""The replicas of a broker: it leads some, with their ISRs, and follows the leaders of others."""
