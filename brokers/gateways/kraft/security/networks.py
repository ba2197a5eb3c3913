"""Hosts in ACLs that are networks in CIDR notation, as ``10.0.0.0/8`` (KIP-1276, ``CidrUtils``). Pure."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_NOTATION = re.compile(r"[0-9A-Fa-f.:]+/[0-9]{1,3}")


def is_notation(host: str) -> bool:
    """Return whether a host is meant as a network, well-formed or not."""
    return "/" in host


# The hosts of all ACLs that there can be.
@lru_cache(maxsize=10_000)
def network_of(host: str) -> IPv4Network | IPv6Network | None:
    """Return the network that a host names; None if it names none. Bits beyond the prefix do not count."""
    if _NOTATION.fullmatch(host) is None:
        return None
    try:
        return ip_network(host, strict=False)
    except ValueError:
        return None


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return a host's address, that of IPv4 for one that is mapped into IPv6; None if it is no address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def is_in_network(host: str, network: str) -> bool:
    """Return whether a client's host is in the network that an ACL names."""
    found, address = network_of(network), address_of(host)
    return found is not None and address is not None and address in found
