"""SCRAM credentials at a gateway: a password is salted and stored, and never shown."""

import base64
import hashlib

import pytest

from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from brokers.wire.security.scram import verifier_of
from state.decisions import EntityDecision, decode
from state.secrets import without_secrets
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

PASSWORD, SALT, ITERATIONS = "of-alice", b"some salt", 4096
SALTED = {
    1: hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), SALT, ITERATIONS),
    2: hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), SALT, ITERATIONS),
}
NAMES = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


pytestmark = pytest.mark.usefixtures("epochs")


def deletion(user: str, mechanism: int = 1) -> Values:
    return {"Name": user, "Mechanism": mechanism}


def upsertion(user: str, mechanism: int = 1, iterations: int = ITERATIONS) -> Values:
    salted = SALTED.get(mechanism, b"salted")
    return deletion(user, mechanism) | {"Iterations": iterations, "Salt": SALT, "SaltedPassword": salted}


def alter(client: ControllerClient, *upsertions: Values, deletions: tuple[Values, ...] = ()) -> dict[str, int]:
    asked = {"Upsertions": list(upsertions), "Deletions": list(deletions)}
    results = client.forward("AlterUserScramCredentials", **asked)["Results"]
    return {one["User"]: one["ErrorCode"] for one in results}


def decided(quorum: InProcessQuorum) -> list[bytes]:
    kept = quorum.bus.decisions((0, 0), 10_000, passing_over=True)
    return [one.body for one in kept if b'"kind":"entity"' in one.body]


@pytest.mark.parametrize("mechanism", sorted(NAMES))
def test_a_verifier_is_made_of_the_password(quorum: InProcessQuorum, client: ControllerClient, mechanism: int) -> None:
    assert alter(client, upsertion("alice", mechanism)) == {"alice": ErrorCode.NONE}
    decision = decode(decided(quorum)[-1])
    assert isinstance(decision, EntityDecision)
    assert decision.names == {"mechanism": NAMES[mechanism], "user": "alice"}
    expected = verifier_of(NAMES[mechanism], PASSWORD, SALT, ITERATIONS)
    assert {key: base64.b64decode(value) for key, value in decision.values.items() if key != "iterations"} == {
        "salt": SALT,
        "server_key": expected.server_key,
        "stored_key": expected.stored_key,
    }
    assert decision.values["iterations"] == str(ITERATIONS)


def test_nothing_has_the_salted_password_and_what_people_read_has_no_key(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    alter(client, upsertion("bob", 1), upsertion("carol", 2))
    kept = b"".join(decided(quorum)) + b"".join(entry.raw for entry in quorum.bus.read(0, quorum.bus.last_seq()))
    for salted in SALTED.values():
        assert not any(text in kept for text in (base64.b64encode(salted), salted.hex().encode(), salted))
    shown = b"".join(map(without_secrets, decided(quorum))) + str(quorum.view()).encode()
    for mechanism, name in NAMES.items():
        verifier = verifier_of(name, PASSWORD, SALT, ITERATIONS)
        for secret in (verifier.stored_key, verifier.server_key, SALT):
            assert base64.b64encode(secret) in kept, mechanism
            assert base64.b64encode(secret) not in shown


def test_a_credential_is_deleted_once(client: ControllerClient) -> None:
    assert alter(client, upsertion("dora")) == {"dora": ErrorCode.NONE}
    assert alter(client, deletions=(deletion("dora", 2),)) == {"dora": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(client, deletions=(deletion("dora"),)) == {"dora": ErrorCode.NONE}
    assert alter(client, deletions=(deletion("dora"),)) == {"dora": ErrorCode.RESOURCE_NOT_FOUND}


def test_refused_credentials_do_not_stop_the_others(client: ControllerClient) -> None:
    made = [upsertion("few", iterations=4095), upsertion("many", iterations=16385), upsertion("other", 3)]
    made += [upsertion("none", iterations=-1), upsertion(""), upsertion("twice"), upsertion("twice", 2)]
    made += [upsertion("both"), upsertion("good")]
    assert alter(client, *made, deletions=(deletion("both", 2),)) == {
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "none": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "other": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "both": ErrorCode.DUPLICATE_RESOURCE,
        "good": ErrorCode.NONE,
    }
