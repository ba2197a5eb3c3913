"""The resources that requests about settings name."""

from brokers.gateways.kraft.metadata.image import BROKER_RESOURCE
from brokers.wire.schema import Values


def place_of(resource: Values) -> tuple[int, str]:
    """Return the type and name of a resource as a request names it."""
    return resource["ResourceType"], resource["ResourceName"]


def holder_of(resource: Values) -> tuple[int, str]:
    """Return the type and name under which the settings of a resource are kept.

    A broker's id may have leading zeros in a request, as the engine and Kafka read it, so that ``01`` is broker 1.
    """
    kind, name = place_of(resource)
    is_id = kind == BROKER_RESOURCE and name.isascii() and name.isdecimal()
    return kind, (name.lstrip("0") or "0") if is_id else name
