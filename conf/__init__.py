"""Settings: what may be set, its defaults, and where it is read from."""
