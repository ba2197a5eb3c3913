"""Kafka's rules from a certificate's subject to a principal, and from a principal to a node."""

import pytest

from brokers.gateways.kraft.security.principals import NodePrincipals, PrincipalRules, RulesError, distinguished_name

SUBJECT = (
    (("countryName", "US"),),
    (("organizationName", "Some Org"),),
    (("organizationalUnitName", "ServiceUsers"),),
    (("commonName", "kafka1"),),
)
NAME = "CN=kafka1,OU=ServiceUsers,O=Some Org,C=US"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", NAME),
        ("", None),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "kafka1"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", "KAFKA1"),
        (r"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L , DEFAULT", "kafka1@serviceusers"),
        (r"RULE:^CN=(.*?),OU=Others.*$/$1/, RULE:^CN=(.*?),.*C=(..)$/$2-$1/,DEFAULT", "US-kafka1"),
        (r"RULE:^CN=(.*?),OU=Others.*$/$1/", None),
        (r"RULE:^CN=kafka1$/x/,DEFAULT", NAME),
        (r"RULE:^CN=(.*?),.*$/$1$2/", "kafka1$2"),
        (r"RULE:^CN=(.*?),.*$/$12/", "kafka12"),
        (r"RULE:^CN=(.*?),.*$/\$1\/$1/", "$1/kafka1"),
        (r"RULE:^CN=(.*?),.*$/$0/", NAME),
        (r"RULE:.*//", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_gives_the_principal(rules: str, principal: str | None) -> None:
    expected = None if principal is None else f"User:{principal}"
    assert PrincipalRules(rules).principal_of(SUBJECT) == expected


@pytest.mark.parametrize("rules", ["CN", "RULE:x", "RULE:x/y", "RULE:(/y/", "RULE:x/y/K", "DEFAULT;DEFAULT", "default"])
def test_a_malformed_rule_is_refused_by_name(rules: str) -> None:
    with pytest.raises(RulesError, match=r"ssl\.principal\.mapping\.rules: "):
        PrincipalRules(rules)


def test_a_name_cannot_pretend_to_have_more_parts() -> None:
    subject = (
        (("commonName", "broker-1,OU=x"),),
        (("userId", " #+\\ "),),
        (("commonName", "a"), ("localityName", "b")),
    )
    assert distinguished_name(subject) == r"CN=a+L=b,UID=\ #\+\\\ ,CN=broker-1\,OU=x"
    assert PrincipalRules(r"RULE:^CN=([^,\\]+)$/$1/").principal_of(((("commonName", "broker-1,x"),),)) is None
    assert distinguished_name(((("emailAddress", "a@b"),),)) == "1.2.840.113549.1.9.1=#1603614062"


def test_a_principal_is_one_node_or_none() -> None:
    brokers = NodePrincipals("broker.principal", "User:broker-<id>")
    assert brokers.node_of("User:broker-12") == 12
    for other in ("User:broker-", "User:broker-01", "User:broker--1", "User:broker-1x", "xUser:broker-1", "User:1", ""):
        assert brokers.node_of(other) is None
    assert brokers.node_of("User:broker-1\n") is None
    assert NodePrincipals("broker.principal", "User:CN=b<id>.x,O=a").node_of("User:CN=b7.x,O=a") == 7
    for wrong in ("User:broker", "broker-<id>", "User:<id>-<id>"):
        with pytest.raises(RulesError, match=r"broker\.principal: expected a principal with one <id>"):
            NodePrincipals("broker.principal", wrong)
