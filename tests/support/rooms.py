"""The folders that are isrflow: each is a package of its own name."""

ROOMS = ("brokers", "bus", "cli", "conf", "controller_logic", "sinks", "state", "streaming")
