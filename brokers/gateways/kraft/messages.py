"""Kafka's messages on a controller's listener, from the layouts in ``layouts/`` (``brokers.wire.catalogue``).

Those that gateways of both kinds read and write have their layouts in ``brokers.gateways.shared``, and those of the
metadata log in ``brokers.wire.metadata``.
"""

from collections.abc import Mapping

from brokers.wire.catalogue import API_VERSIONS_KEY as API_VERSIONS_KEY
from brokers.wire.catalogue import Catalogue
from brokers.wire.catalogue import Request as Request
from brokers.wire.catalogue import RequestHeader as RequestHeader
from brokers.wire.catalogue import Response as Response
from brokers.wire.catalogue import UnsupportedError as UnsupportedError
from brokers.wire.catalogue import framed as framed
from brokers.wire.layout import Layout
from brokers.wire.schema import MessageError as MessageError

CATALOGUE = Catalogue(
    "brokers.wire.metadata",
    "brokers.wire.security",
    "brokers.wire.configs",
    "brokers.gateways.shared",
    "brokers.gateways.kraft",
)
API_VERSIONS_MAX = 4

message = CATALOGUE.message
decode_request = CATALOGUE.decode_request
encode_request = CATALOGUE.encode_request
encode_response = CATALOGUE.encode_response
decode_response = CATALOGUE.decode_response
encode_message = CATALOGUE.encode_message
decode_message = CATALOGUE.decode_message
versions_refusal = CATALOGUE.versions_refusal


def layouts() -> Mapping[str, Layout]:
    """Return every layout by its message's name; they are read once."""
    return CATALOGUE.layouts
