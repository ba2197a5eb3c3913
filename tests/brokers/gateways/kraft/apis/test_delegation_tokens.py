"""Delegation tokens at a gateway: their owners, the users who may renew and end them, and hidden secrets."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.messages import decode_response, encode_request
from brokers.gateways.kraft.metadata import acl_numbers as numbers
from brokers.gateways.kraft.security.settings import SecurityError
from brokers.gateways.kraft.security.token_key import TokenKey
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from bus.clock import now_ms
from tests.brokers.gateways.kraft.apis.test_acls import ADMIN, ALICE, BOB, MALLORY, STANDARD, creation
from tests.support.controller_client import ControllerClient, key_of, principal_bytes
from tests.support.gateway_in_process import InProcessQuorum

KEY = "a key that nobody else has"
HOUR_MS = 3_600_000
NO_KEY = "DELEGATION_TOKEN_AUTH_DISABLED"


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    folder = tmp_path_factory.mktemp("quorum")
    (folder / "token.key").write_text(f"{KEY}\n")
    settings = {
        "authorizer_class_name": STANDARD,
        "super_users": ADMIN,
        "delegation_token_secret_key_file": str(folder / "token.key"),
        "delegation_token_max_lifetime_ms": 10 * HOUR_MS,
        "delegation_token_expiry_time_ms": HOUR_MS,
    }
    quorum = InProcessQuorum(folder, **settings)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    client.close()
    yield quorum
    quorum.stop()


def create(client: ControllerClient, by: str = ALICE, owner: str = "", *renewers: str, **more: Any) -> Values:
    kind, _, name = owner.partition(":")
    named = {"OwnerPrincipalType": kind or None, "OwnerPrincipalName": name or None}
    listed = [dict(zip(("PrincipalType", "PrincipalName"), one.split(":"), strict=True)) for one in renewers]
    asked = named | {"Renewers": listed, "MaxLifetimeMs": -1} | more
    return client.forward("CreateDelegationToken", principal=by, **asked)


def renew(client: ControllerClient, token: Values, by: str = ALICE, period_ms: int = -1) -> Values:
    return client.forward("RenewDelegationToken", principal=by, Hmac=token["Hmac"], RenewPeriodMs=period_ms)


def expire(client: ControllerClient, token: Values, by: str = ALICE, period_ms: int = -1) -> Values:
    return client.forward("ExpireDelegationToken", principal=by, Hmac=token["Hmac"], ExpiryTimePeriodMs=period_ms)


def name_of(response: Values) -> str:
    return ErrorCode(response["ErrorCode"]).name


def test_a_token_is_made_renewed_and_ended(quorum: InProcessQuorum, client: ControllerClient) -> None:
    before = now_ms()
    made = create(client, ALICE, "", BOB)
    assert name_of(made) == "NONE"
    assert made["Hmac"] == hmac.digest(KEY.encode(), made["TokenId"].encode(), hashlib.sha512)
    assert (made["PrincipalName"], made["TokenRequesterPrincipalName"]) == ("alice", "alice")
    assert before <= made["IssueTimestampMs"] <= now_ms()
    lives = [made[name] - made["IssueTimestampMs"] for name in ("ExpiryTimestampMs", "MaxTimestampMs")]
    assert lives == [HOUR_MS, 10 * HOUR_MS]

    assert name_of(renew(client, made, MALLORY)) == "DELEGATION_TOKEN_OWNER_MISMATCH"
    renewed = renew(client, made, BOB, HOUR_MS // 2)
    assert (name_of(renewed), renewed["ExpiryTimestampMs"] < made["ExpiryTimestampMs"]) == ("NONE", True)
    assert name_of(expire(client, made, MALLORY)) == "DELEGATION_TOKEN_OWNER_MISMATCH"
    later = expire(client, made, ALICE, 1_000 * HOUR_MS)
    assert later["ExpiryTimestampMs"] == made["MaxTimestampMs"]
    assert name_of(expire(client, made)) == "NONE"
    assert name_of(renew(client, made)) == name_of(expire(client, made)) == "DELEGATION_TOKEN_NOT_FOUND"


def test_a_token_past_its_time_cannot_be_renewed(client: ControllerClient) -> None:
    made = create(client)
    assert name_of(expire(client, made, ALICE, 0)) == "NONE"
    # Its time is over, and at one of the next ticks it is gone.
    assert name_of(renew(client, made)) in {"DELEGATION_TOKEN_EXPIRED", "DELEGATION_TOKEN_NOT_FOUND"}


def test_a_token_lives_no_longer_than_requested(client: ControllerClient) -> None:
    made = create(client, MaxLifetimeMs=60_000)
    assert made["ExpiryTimestampMs"] == made["MaxTimestampMs"] == made["IssueTimestampMs"] + 60_000
    assert create(client, MaxLifetimeMs=2**63 - 1)["MaxTimestampMs"] - now_ms() <= 10 * HOUR_MS


def test_a_token_for_another_needs_an_acl(client: ControllerClient) -> None:
    assert name_of(create(client, MALLORY, ALICE)) == "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
    granted = creation(MALLORY, "CREATE_TOKENS", "USER", ALICE)
    [result] = client.forward("CreateAcls", principal=ADMIN, Creations=[granted])["Results"]
    assert result["ErrorCode"] == ErrorCode.NONE
    made = create(client, MALLORY, ALICE)
    assert (name_of(made), made["PrincipalName"], made["TokenRequesterPrincipalName"]) == ("NONE", "alice", "mallory")
    assert name_of(expire(client, made, MALLORY)) == "DELEGATION_TOKEN_OWNER_MISMATCH", "as in Kafka"
    assert name_of(create(client, ADMIN, BOB)) == "NONE"
    assert granted["ResourceType"] == numbers.RESOURCE_TYPES["USER"]


def test_renewers_are_users(client: ControllerClient) -> None:
    assert name_of(create(client, ALICE, "", "Group:all")) == "INVALID_PRINCIPAL_TYPE"


def test_an_anonymous_client_and_one_with_a_token_get_no_token(client: ControllerClient) -> None:
    refused = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    assert name_of(create(client, "User:ANONYMOUS")) == refused
    direct = client.ask("CreateDelegationToken", OwnerPrincipalType=None, OwnerPrincipalName=None, Renewers=[])
    assert name_of(direct) == refused
    assert name_of(create(client, is_token=True)) == refused


def test_one_owner_cannot_take_the_room_of_others(client: ControllerClient) -> None:
    renewers = [f"User:{'r' * 500}{number}" for number in range(7)]
    made = []
    while name_of(one := create(client, MALLORY, "", *renewers)) == "NONE":
        made.append(one)
    assert name_of(one) == "POLICY_VIOLATION"
    assert len(made) < 30
    assert name_of(create(client, MALLORY, "", *renewers, *renewers)) == "POLICY_VIOLATION"
    assert name_of(create(client, BOB, "", *renewers)) == "NONE"
    assert name_of(expire(client, made[0], MALLORY)) == "NONE"
    assert name_of(create(client, MALLORY, "", *renewers)) == "NONE"


def test_requests_for_one_owner_are_counted_one_after_another(quorum: InProcessQuorum) -> None:
    clients = [quorum.client() for _ in range(40)]
    renewers = [{"PrincipalType": "User", "PrincipalName": "r" * 4_000}]
    asked = {"OwnerPrincipalType": None, "OwnerPrincipalName": None, "Renewers": renewers, "MaxLifetimeMs": -1}
    data = encode_request(key_of("CreateDelegationToken"), 3, 1, None, asked)
    for one in clients:
        told = {"RequestPrincipal": principal_bytes("User:eve"), "ClientHostAddress": bytes([127, 0, 0, 1])}
        one.send("Envelope", RequestData=data, **told)
    answers = [one.receive("Envelope")["ResponseData"] for one in clients]
    errors = [decode_response(key_of("CreateDelegationToken"), 3, answer).values["ErrorCode"] for answer in answers]
    assert 0 < errors.count(ErrorCode.NONE) <= 24
    assert set(errors) == {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}
    for one in clients:
        one.close()


def test_nothing_shows_the_key_or_what_proves_a_token(quorum: InProcessQuorum, client: ControllerClient) -> None:
    made = create(client)
    kept = [one.body for one in quorum.bus.decisions((0, 0), 10_000, passing_over=True)]
    kept += [entry.raw for entry in quorum.bus.read(0, quorum.bus.last_seq())]
    kept += [file.read_bytes() for file in quorum.directory.rglob("*") if file.is_file() and file.name != "token.key"]
    assert any(made["TokenId"].encode() in one for one in kept)
    proof = made["Hmac"]
    secrets = (KEY.encode(), proof, proof.hex().encode(), base64.b64encode(proof), base64.urlsafe_b64encode(proof))
    assert not any(secret in one for one in kept for secret in secrets)
    assert KEY not in f"{vars(quorum.gateways[100].gateway)}{quorum.view()}"


def test_a_key_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecurityError, match=r"delegation\.token\.secret\.key\.file: .*No such file"):
        TokenKey(str(tmp_path / "none"))


def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    client = quorum.client()
    try:
        quorum.join(client, 1)
        made = create(client)
        assert name_of(made) == name_of(renew(client, made)) == name_of(expire(client, made)) == NO_KEY
    finally:
        client.close()
        quorum.stop()
