"""A Kafka controller's ``server.properties``, as the settings of the gateway that takes its place.

Kafka has settings of one listener under ``listener.name.<name>.``, and the listener's protocol in a map of all. A
gateway has one listener, so they become its own.
"""

from collections.abc import Collection, Mapping

_NAMES, _LISTENERS, _PROTOCOLS = "controller.listener.names", "listeners", "listener.security.protocol.map"


def as_gateways(given: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return the settings among ``keys`` that a controller's file gives."""
    listener = given.get(_NAMES, "").split(",")[0].strip()
    own = f"listener.name.{listener.lower()}."
    taken = {key: text for key, text in given.items() if key in keys and key != _LISTENERS}
    taken |= {key.removeprefix(own): text for key, text in given.items() if key.startswith(own)} if listener else {}
    pairs = dict(pair.strip().partition("://")[::2] for pair in given.get(_LISTENERS, "").split(","))
    if place := pairs.get(listener):
        # Kafka listens everywhere if no host is named.
        taken[_LISTENERS] = f"{listener}://{'0.0.0.0' if place.startswith(':') else ''}{place}"
    protocols = dict(pair.strip().partition(":")[::2] for pair in given.get(_PROTOCOLS, "").split(","))
    if protocol := protocols.get(listener):
        taken["security.protocol"] = protocol
    return {key: text for key, text in taken.items() if key in keys}
