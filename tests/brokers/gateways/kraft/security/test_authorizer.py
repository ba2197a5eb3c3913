"""Which ACLs allow what: the rules of Kafka's StandardAuthorizer, sentence by sentence."""

import random
from collections.abc import Iterable
from typing import Any, get_args

import pytest

from brokers.gateways.kraft.security.authorizer import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    EVERYBODY,
    SUPER_USER,
    Action,
    Authorizer,
)
from state.acl import Acl, Operation

ALICE, BOB, ADMIN = "User:alice", "User:bob", "User:admin"
HERE = "10.0.0.1"
READ = Action("READ", "TOPIC", "orders")
OPERATIONS = get_args(Operation)


def acl(**fields: Any) -> Acl:
    plain = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": ALICE,
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
    }
    return Acl(**plain | fields)


def by(*acls: Acl, everyone: bool = False, networks: bool = False) -> Authorizer:
    return Authorizer(acls, frozenset({ADMIN}), allows_if_no_acl=everyone, knows_networks=networks)


def allows(acls: Iterable[Acl], principal: str = ALICE, host: str = HERE, action: Action = READ) -> bool:
    return by(*acls).decide(principal, host, action).is_allowed


@pytest.mark.parametrize("everyone", [False, True])
def test_without_an_entry_the_default_holds(everyone: bool) -> None:
    default = DEFAULT_ALLOW if everyone else DEFAULT_DENY
    assert by(everyone=everyone).decide(ALICE, HERE, READ) == default
    of_others = [acl(resource_name="order"), acl(resource_type="GROUP"), acl(resource_name="ordersx")]
    assert by(*of_others, everyone=everyone).decide(ALICE, HERE, READ) == default


def test_where_entries_apply_and_none_matches_nobody_is_allowed() -> None:
    """The default is for resources without any entry, not for principals without one."""
    others = [acl(principal=BOB), acl(host="10.0.0.9"), acl(operation="WRITE", permission_type="DENY")]
    for one in others:
        assert by(one, everyone=True).decide(ALICE, HERE, READ) == DEFAULT_DENY
    for name, pattern in (("*", "LITERAL"), ("ord", "PREFIXED")):
        one = acl(principal=BOB, resource_name=name, pattern_type=pattern)
        assert by(one, everyone=True).decide(ALICE, HERE, READ) == DEFAULT_DENY


def test_super_users_may_do_anything() -> None:
    denied = acl(principal=EVERYBODY, operation="ALL", permission_type="DENY")
    assert by(denied).decide(ADMIN, HERE, READ) == SUPER_USER
    assert not by(denied).decide("User:Admin", HERE, READ).is_allowed


@pytest.mark.parametrize(
    ("name", "pattern", "topic", "applies"),
    [
        ("orders", "LITERAL", "orders", True),
        ("orders", "LITERAL", "orders2", False),
        ("orders", "LITERAL", "order", False),
        ("Orders", "LITERAL", "orders", False),
        ("*", "LITERAL", "orders", True),
        ("*", "LITERAL", "*", True),
        ("ord", "PREFIXED", "orders", True),
        ("orders", "PREFIXED", "orders", True),
        ("orders2", "PREFIXED", "orders", False),
        ("rd", "PREFIXED", "orders", False),
        # As the beginning of a name, a star is nothing special.
        ("*", "PREFIXED", "orders", False),
        ("*", "PREFIXED", "*orders", True),
        ("ord*", "LITERAL", "orders", False),
    ],
)
def test_names_apply_as_literals_beginnings_and_the_star(name: str, pattern: str, topic: str, applies: bool) -> None:
    one = acl(resource_name=name, pattern_type=pattern)
    assert allows([one], action=Action("READ", "TOPIC", topic)) == applies


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    ("name", "pattern"), [("orders", "LITERAL"), ("*", "LITERAL"), ("o", "PREFIXED"), ("orders", "PREFIXED")]
)
@pytest.mark.parametrize("principal", [ALICE, EVERYBODY])
def test_a_denial_comes_first_wherever_it_stands(name: str, pattern: str, principal: str, position: int) -> None:
    acls = [acl(), acl(resource_name="or", pattern_type="PREFIXED", operation="ALL")]
    denial = acl(resource_name=name, pattern_type=pattern, principal=principal, permission_type="DENY")
    acls.insert(2 * position, denial)
    verdict = by(*acls).decide(ALICE, HERE, READ)
    assert (verdict.is_allowed, verdict.acl) == (False, denial)


@pytest.mark.parametrize(
    ("principal", "who", "matches"),
    [
        (ALICE, ALICE, True),
        (EVERYBODY, ALICE, True),
        (EVERYBODY, "User:ANONYMOUS", True),
        (ALICE, BOB, False),
        ("Group:alice", ALICE, False),
        (EVERYBODY, "Group:alice", True),
        ("User:CN=a,O=b", "User:CN=a,O=b", True),
        ("User:a*", "User:ab", False),
    ],
)
def test_an_entry_is_for_its_principal_or_for_everybody(principal: str, who: str, matches: bool) -> None:
    assert allows([acl(principal=principal)], who) == matches


@pytest.mark.parametrize(
    ("host", "client", "matches"),
    [
        ("*", HERE, True),
        (HERE, HERE, True),
        (HERE, "10.0.0.2", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("2001:DB8::1", "2001:db8:0:0:0:0:0:1", True),
        (HERE, f"::ffff:{HERE}", True),
        ("10.0.0.0/8", HERE, False),
        ("localhost", "127.0.0.1", False),
        (HERE, "", False),
    ],
)
def test_an_entry_is_for_its_host_or_for_any(host: str, client: str, matches: bool) -> None:
    assert allows([acl(host=host)], host=client) == matches


@pytest.mark.parametrize(
    ("network", "client", "matches"),
    [
        ("10.0.0.0/8", "10.255.255.255", True),
        ("10.0.0.0/8", "11.0.0.0", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("10.0.0.0/8", "::ffff:10.0.0.1", True),
        ("10.0.0.7/32", "10.0.0.7", True),
        ("0.0.0.0/0", "2001:db8::1", False),
        ("2001:db8::/32", "2001:db8:ffff::1", True),
        ("2001:db8::/32", "2001:db9::1", False),
        ("10.0.0.0/33", "10.0.0.1", False),
        ("10.0.0.0/8", "", False),
    ],
)
def test_a_host_may_be_a_network_at_a_level_at_which_brokers_know_networks(
    network: str, client: str, matches: bool
) -> None:
    denied = acl(host=network, permission_type="DENY")
    assert by(acl(host=network), networks=True).decide(ALICE, client, READ).is_allowed == matches
    assert by(acl(), denied, networks=True).decide(ALICE, client, READ).is_allowed != matches
    assert by(acl(host=network)).decide(ALICE, client, READ).is_allowed is False
    assert by(acl(), denied).decide(ALICE, client, READ).is_allowed is True


IMPLIED = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS", "DESCRIBE_CONFIGS", "ALL"},
}


@pytest.mark.parametrize("held", OPERATIONS)
@pytest.mark.parametrize("wanted", [one for one in OPERATIONS if one != "ALL"])
def test_operations_imply_what_kafkas_do_and_denials_imply_nothing(wanted: Operation, held: str) -> None:
    action = Action(wanted, "TOPIC", "orders")
    assert allows([acl(operation=held)], action=action) == (held in IMPLIED.get(wanted, {wanted, "ALL"}))
    everything = acl(operation="ALL")
    denial = acl(operation=held, permission_type="DENY")
    assert allows([everything, denial], action=action) == (held not in (wanted, "ALL"))


def slowly(acls: list[Acl], principal: str, host: str, action: Action) -> bool:
    """Decide by looking at every entry, as the first sentences of the module say."""
    applying = [
        one
        for one in acls
        if one.resource_type == action.resource_type
        and (
            action.name.startswith(one.resource_name)
            if one.pattern_type == "PREFIXED"
            else one.resource_name in (action.name, "*")
        )
    ]
    matching = {
        one.permission_type
        for one in applying
        if one.principal in (principal, EVERYBODY)
        and one.host in (host, "*")
        and (
            one.operation in (action.operation, "ALL")
            or (one.permission_type == "ALLOW" and one.operation in IMPLIED.get(action.operation, ()))
        )
    }
    return "DENY" not in matching and ("ALLOW" in matching or not applying)


@pytest.mark.parametrize("seed", range(20))
def test_it_decides_as_a_look_at_every_entry_does(seed: int) -> None:
    rng = random.Random(seed)

    def drawn(_: int) -> Acl:
        return acl(
            resource_type=rng.choice(("TOPIC", "TOPIC", "GROUP")),
            resource_name=rng.choice(("a", "ab", "abc", "b", "*")),
            pattern_type=rng.choice(("LITERAL", "PREFIXED")),
            principal=rng.choice((ALICE, BOB, EVERYBODY)),
            host=rng.choice(("*", HERE)),
            operation=rng.choice(("READ", "WRITE", "DESCRIBE", "ALL")),
            permission_type=rng.choice(("ALLOW", "ALLOW", "DENY")),
        )

    seen = set()
    for size in (1, 2, 4, 8):
        for _ in range(25):
            acls = [drawn(number) for number in range(size)]
            authorizer = by(*acls, everyone=True)
            for principal in (ALICE, BOB):
                for name in ("a", "abcd", "b", "c"):
                    for operation in ("READ", "DESCRIBE"):
                        action = Action(operation, "TOPIC", name)  # type: ignore[arg-type]
                        expected = slowly(acls, principal, HERE, action)
                        assert authorizer.decide(principal, HERE, action).is_allowed == expected, (acls, action)
                        seen.add(expected)
    assert seen == {True, False}
