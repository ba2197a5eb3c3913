"""Whether ACLs allow an action, as Kafka's brokers decide it (``StandardAuthorizerData``). Pure.

An entry applies to a resource if it names the resource itself, a beginning of its name, or ``*``. If an entry that
denies matches, the action is denied; otherwise, if one that allows matches, it is allowed. If entries apply to the
resource and none matches, the action is denied. If none applies, ``allow.everyone.if.no.acl.found`` decides. Super
users may do anything.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from brokers.gateways.kraft.security.networks import address_of, is_in_network, is_notation
from state.acl import WILDCARD, Acl, Operation, ResourceType

EVERYBODY = "User:*"
# What an entry allows besides its own operation. An entry that denies has no such effect.
IMPLIED_BY: dict[Operation, frozenset[Operation]] = {
    "DESCRIBE": frozenset({"READ", "WRITE", "DELETE", "ALTER"}),
    "DESCRIBE_CONFIGS": frozenset({"ALTER_CONFIGS"}),
}
_NOTHING: frozenset[Operation] = frozenset()


class Action(NamedTuple):
    """An operation on one resource."""

    operation: Operation
    resource_type: ResourceType
    name: str


class Verdict(NamedTuple):
    """Whether an action is allowed, and by which rule."""

    is_allowed: bool
    rule: str
    # The entry that decided, if one did.
    acl: Acl | None = None


SUPER_USER = Verdict(True, "SuperUser")
DEFAULT_ALLOW = Verdict(True, "DefaultAllow")
DEFAULT_DENY = Verdict(False, "DefaultDeny")


class Authorizer:
    """All ACLs, laid out so that a decision looks only at the entries that apply to its resource."""

    def __init__(
        self, acls: Iterable[Acl], super_users: frozenset[str], *, allows_if_no_acl: bool, knows_networks: bool
    ) -> None:
        self._super_users = super_users
        self._knows_networks = knows_networks
        self._if_none = DEFAULT_ALLOW if allows_if_no_acl else DEFAULT_DENY
        self._literal: defaultdict[tuple[str, str], list[Acl]] = defaultdict(list)
        self._prefixed: defaultdict[tuple[str, str], list[Acl]] = defaultdict(list)
        for acl in acls:
            held = self._prefixed if acl.pattern_type == "PREFIXED" else self._literal
            held[acl.resource_type, acl.resource_name].append(acl)
        self._lengths = sorted({len(name) for _, name in self._prefixed})

    def decide(self, principal: str, host: str, action: Action) -> Verdict:
        """Decide on one action."""
        if principal in self._super_users:
            return SUPER_USER
        has_any, allowed = False, None
        for acl in self._applying(action.resource_type, action.name):
            has_any = True
            if not _matches(acl, principal, host, action.operation, knows_networks=self._knows_networks):
                continue
            if acl.permission_type == "DENY":
                return Verdict(False, "MatchingAcl", acl)
            allowed = acl
        if allowed is not None:
            return Verdict(True, "MatchingAcl", allowed)
        return DEFAULT_DENY if has_any else self._if_none

    def _applying(self, resource_type: str, name: str) -> Iterator[Acl]:
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        for length in self._lengths:
            if length > len(name):
                return
            yield from self._prefixed.get((resource_type, name[:length]), ())


def _matches(acl: Acl, principal: str, host: str, operation: Operation, *, knows_networks: bool) -> bool:
    """Return whether an entry that applies to the resource matches the rest."""
    if acl.principal not in (principal, EVERYBODY):
        return False
    if knows_networks and is_notation(acl.host):
        if not is_in_network(host, acl.host):
            return False
    elif acl.host != WILDCARD and not _is_same(acl.host, host):
        return False
    if acl.operation in ("ALL", operation):
        return True
    return acl.permission_type == "ALLOW" and acl.operation in IMPLIED_BY.get(operation, _NOTHING)


def _is_same(one: str, other: str) -> bool:
    """Compare addresses. IPv6 has several ways to write one address."""
    return one == other or (address_of(one) or one) == (address_of(other) or other)
