"""Who may change anything through a gateway: ``super.users``, or every caller if none are named.

Brokers pass on clients' requests with the client's principal. They do not check what the client may do, because in
Kafka the controller does (``ControllerApis``). A caller that connects to the gateway itself has the principal that its
connection proved, or ``ANONYMOUS`` if the listener does not authenticate.
"""

import ipaddress
from typing import NamedTuple

from brokers.gateways.kraft.messages import Request, decode_message
from brokers.gateways.kraft.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import WireError
from brokers.wire.schema import Values

ANONYMOUS = "User:ANONYMOUS"
# Brokers create these topics in their own name and without an Envelope.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# These requests only read. Everything else that clients may request is for super users.
READING = frozenset({"ListPartitionReassignments", "DescribeQuorum"})
_OF_TOPICS = frozenset({"CreateTopics", "DeleteTopics", "CreatePartitions"})
_OF_RESOURCES = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})
# The error that refuses settings of a resource by its type; CLUSTER_AUTHORIZATION_FAILED for all other types.
SETTINGS_ERRORS = {
    TOPIC_RESOURCE: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP_RESOURCE: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
_VERSION_BYTES = 2
# The limit of a text in an event (``state.limits.Text``).
PRINCIPAL_CHARS_MAX = 4_096


class Caller(NamedTuple):
    """The principal that asks, and its host."""

    principal: str
    host: str
    # Whether the caller is connected to the gateway itself.
    is_direct: bool = False
    # Whether a directly connected caller may act as a broker.
    is_broker: bool = False
    # Whether the caller logged in with a delegation token.
    is_token: bool = False

    @property
    def connection(self) -> str:
        """How the request reached the gateway."""
        return "direct" if self.is_direct else "broker"


def caller_of(envelope: Values, *, must_be_known: bool) -> Caller:
    """Return the client whose request a broker passes on.

    A broker with its own principal builder may write principals that no other program can read. Such a principal
    becomes an empty text, or is refused if it ``must_be_known``.
    Raises ``RefusedError`` with the error that answers the Envelope.
    """
    try:
        host = str(ipaddress.ip_address(envelope["ClientHostAddress"]))
    except ValueError as error:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the client's address: {error}") from error
    try:
        principal, is_token = _told(envelope["RequestPrincipal"])
        return Caller(principal, host, is_token=is_token)
    except RefusedError:
        if must_be_known:
            raise
        return Caller("", host)


def _told(data: bytes | None) -> tuple[str, bool]:
    """Read a principal as Kafka's default builder writes it, and whether a delegation token proved it.

    Raises ``RefusedError`` for any other (``DefaultKafkaPrincipalBuilder.serialize``).
    """
    raw = data or b""
    try:
        version = int.from_bytes(raw[:_VERSION_BYTES], "big", signed=True)
        values = decode_message("DefaultPrincipalData", version, raw[_VERSION_BYTES:])
    except WireError as error:
        raise RefusedError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return f"{values['Type']}:{values['Name']}", bool(values["TokenAuthenticated"])


def shown_principal(caller: Caller) -> str:
    """Return the principal that events and decisions name; empty if it is anonymous or too long."""
    known = caller.principal not in ("", ANONYMOUS) and len(caller.principal) <= PRINCIPAL_CHARS_MAX
    return caller.principal if known else ""


def refused_to(caller: Caller, request: Request, super_users: frozenset[str]) -> Values | None:
    """Return the refusal of a change for a caller that is not a super user, or None if the change is allowed."""
    if not super_users or request.name in READING or caller.principal in super_users:
        return None
    if caller.is_direct and caller.is_broker and is_of_brokers(request):
        return None
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    refusal = refusal_of(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED if request.name in _OF_TOPICS else error)
    if request.name in _OF_RESOURCES:
        for one in refusal["Responses"]:
            one["ErrorCode"] = SETTINGS_ERRORS.get(one["ResourceType"], error)
    return refusal


def is_of_brokers(request: Request) -> bool:
    """Return whether brokers make this request in their own name: it only creates internal topics."""
    return request.name == "CreateTopics" and {one["Name"] for one in request.values["Topics"]} <= INTERNAL_TOPICS
