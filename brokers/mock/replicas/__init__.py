"""The replicas that a broker holds: leading, following, and keeping the in-sync set."""
