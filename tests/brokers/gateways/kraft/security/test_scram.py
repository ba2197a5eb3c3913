"""SCRAM against the vector of RFC 7677 and against another client; and messages that prove nothing."""

import base64
import secrets
from pathlib import Path

import pytest
from kafka.net.sasl.scram import ScramClient as OtherClient

from brokers.gateways.kraft.security.credentials import Credentials, CredentialsError
from brokers.wire.security.scram import HASHES, ScramClient, ScramError, ScramServer, verifier_of

CANARY = "canary-of-a-password"


def test_the_exchange_is_that_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    server = ScramServer("SCRAM-SHA-256")
    verifier = verifier_of("SCRAM-SHA-256", "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    assert server.user_of(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == "user"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert server.first(verifier) == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert server.final(b"c=biws,r=" + nonce + b",p=" + proof) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", HASHES)
def test_clients_and_the_server_understand_each_other(mechanism: str) -> None:
    verifier = verifier_of(mechanism, CANARY)
    server, other = ScramServer(mechanism), OtherClient("broker-1", CANARY, mechanism)
    assert server.user_of(other.first_message()) == "broker-1"
    other.process_server_first_message(server.first(verifier))
    other.process_server_final_message(server.final(other.final_message()))
    server, ours = ScramServer(mechanism), ScramClient(mechanism, "a,b=c", CANARY)
    assert server.user_of(ours.first()) == "a,b=c"
    ours.verify(server.final(ours.final(server.first(verifier))))
    assert CANARY not in repr(verifier) + str(verifier)


def test_messages_of_a_former_exchange_prove_nothing() -> None:
    verifier = verifier_of("SCRAM-SHA-512", CANARY)
    first, client = ScramServer("SCRAM-SHA-512"), ScramClient("SCRAM-SHA-512", "u", CANARY)
    opening = client.first()
    first.user_of(opening)
    proof = client.final(first.first(verifier))
    first.final(proof)
    replayed = ScramServer("SCRAM-SHA-512")
    replayed.user_of(opening)
    replayed.first(verifier)
    for server in (replayed, first):
        with pytest.raises(ScramError, match=r"another exchange|malformed"):
            server.final(proof)


@pytest.mark.parametrize(
    "message",
    [b"", b"\xff", b"n,,n=u", b"p=tls-unique,,n=u,r=x", b"n,,n=,r=x", b"n,,n=u=2D,r=x", b"n,a=root,n=u,r=x", b"n,,r=x"],
)
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError):
        ScramServer("SCRAM-SHA-256").user_of(message)


def test_a_malformed_or_wrong_proof_is_refused() -> None:
    verifier = verifier_of("SCRAM-SHA-256", CANARY)

    def answered(change: bytes, to: bytes, password: str = CANARY) -> None:
        server, client = ScramServer("SCRAM-SHA-256"), ScramClient("SCRAM-SHA-256", "u", password)
        server.user_of(client.first())
        server.final(client.final(server.first(verifier)).replace(change, to))

    answered(b"-", b"-")
    for change, to in (
        (b"c=biws", b"c=eSws"),
        (b",p=", b",p=!"),
        (b",p=", b",p=AAAA"),
        (b"c=", b"x="),
        (b"r=", b"r=x"),
    ):
        with pytest.raises(ScramError) as caught:
            answered(change, to)
        assert CANARY not in str(caught.value)
    with pytest.raises(ScramError, match="wrong password, or no such user"):
        answered(b"-", b"-", "another password")


def test_users_come_from_a_file_that_may_change(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    stored = verifier_of("SCRAM-SHA-512", "kept")
    parts = {"salt": stored.salt, "stored_key": stored.stored_key, "server_key": stored.server_key}
    text = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items())
    file.write_text(f'[alice]\npassword = "{CANARY}"\n[bob]\nscram-sha-512 = "{text},iterations=4096"\n')
    users = Credentials(str(file), look_interval_s=0)
    assert users.verifier("SCRAM-SHA-512", "bob") == stored
    assert users.is_password("alice", CANARY) and users.is_password("bob", "kept")
    for user, password in (("alice", "kept"), ("bob", CANARY), ("eve", ""), ("eve", CANARY), ("", "")):
        assert not users.is_password(user, password)
    assert users.verifier("SCRAM-SHA-256", "eve").salt == users.verifier("SCRAM-SHA-256", "eve").salt
    file.write_text('[alice]\npassword = "changed-a-lot"\n')
    assert users.is_password("alice", "changed-a-lot") and not users.is_password("alice", CANARY)


def users_in(file: Path, *shapes: tuple[int, int], secret: str = "", password: str = "") -> Credentials:
    """Write users with salts and iterations of these shapes, and read them."""
    lines = [f'secret = "{secret}"'] if secret else []
    for number, (salt_bytes, iterations) in enumerate(shapes):
        made = verifier_of("SCRAM-SHA-512", CANARY, bytes(range(1, salt_bytes + 1)), iterations)
        parts = {"salt": made.salt, "stored_key": made.stored_key, "server_key": made.server_key}
        text = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items())
        lines.append(f'[user-{number}]\nscram-sha-512 = "{text},iterations={iterations}"')
    lines += [f'[eve]\npassword = "{password}"'] if password else []
    file.write_text("\n".join(lines))
    return Credentials(str(file), look_interval_s=0)


def test_an_exchange_does_not_tell_who_is_a_user(tmp_path: Path) -> None:
    shapes = {(26, 8_192), (16, 5_000)}
    secret = "x" * 32
    users = users_in(tmp_path / "users.toml", *shapes, secret=secret)
    strangers = [users.verifier("SCRAM-SHA-512", f"stranger-{number}") for number in range(40)]
    assert {(len(one.salt), one.iterations) for one in strangers} == shapes, "they look like users"
    assert len({one.salt for one in strangers}) == 40
    # Another gateway, and this one after a restart or another change of the file, say the same.
    elsewhere = users_in(tmp_path / "same.toml", *sorted(shapes), (16, 5_000), secret=secret)
    again = [elsewhere.verifier("SCRAM-SHA-512", f"stranger-{number}") for number in range(40)]
    assert [(one.salt, one.iterations) for one in again] == [(one.salt, one.iterations) for one in strangers]
    # Somebody who becomes a user with a password keeps the salt, and so does a user whose file is read again.
    before = users_in(tmp_path / "eve.toml", secret=secret).verifier("SCRAM-SHA-256", "eve")
    after = users_in(tmp_path / "eve.toml", secret=secret, password="p").verifier("SCRAM-SHA-256", "eve")
    assert (after.salt, after.iterations) == (before.salt, before.iterations)
    assert after.stored_key != before.stored_key


def test_a_secret_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"users\.toml: secret: expected a text of 32 characters or more"):
        users_in(tmp_path / "users.toml", secret="short")


@pytest.mark.parametrize(
    "text",
    [
        f"alice = '{CANARY}'",
        f"[alice]\npasswort = '{CANARY}'",
        f"[alice]\npassword = '{CANARY}'\nscram-sha-256 = '{CANARY}'",
        f"[alice]\nscram-sha-256 = '{CANARY}'",
        f"[alice]\npassword = {CANARY}",
        f"[alice]\nscram-sha-256 = 'salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=4096'\n# {CANARY}",
    ],
)
def test_an_error_in_the_file_names_the_user_and_shows_no_secret(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=r"sasl\.credentials\.file: .*users\.toml: .*expected") as caught:
        Credentials(str(file))
    assert CANARY not in str(caught.value)
