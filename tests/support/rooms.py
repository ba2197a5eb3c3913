"""The folders of isrflow's code; each is a package with the folder's name."""

ROOMS = (
    "brokers",
    "bus",
    "cli",
    "conf",
    "controller_logic",
    "history",
    "isrflow",
    "sinks",
    "state",
    "streaming",
    "web",
)
