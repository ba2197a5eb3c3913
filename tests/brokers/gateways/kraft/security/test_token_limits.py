"""How many delegation tokens one owner may have, and how large they may be."""

import msgspec
import pytest

from brokers.gateways.kraft.security.token_limits import (
    OWNER_BYTES_MAX,
    OWNER_TOKENS_MAX,
    RENEWERS_BYTES_MAX,
    check_limits,
)
from brokers.wire.errors import ErrorCode, RefusedError
from controller_logic.entities import ENTITIES_BYTES_MAX, ENTITIES_MAX
from state.entity import TOKEN, TOKEN_ID, Entity

ALICE, BOB = "User:alice", "User:bob"


def token(number: int, owner: str = ALICE, *renewers: str) -> Entity:
    values = {"owner": owner, "requester": owner, "renewers": msgspec.json.encode(renewers).decode()}
    values |= dict.fromkeys(("issue_timestamp_ms", "max_timestamp_ms", "expiry_timestamp_ms"), "1764100000000")
    return Entity(entity_type=TOKEN, names={TOKEN_ID: f"{number:022d}"}, values=values)


def refusal(new: Entity, *held: Entity) -> str:
    with pytest.raises(RefusedError) as refused:
        check_limits(new, held)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    return str(refused.value)


def test_one_owner_may_have_a_small_share_of_what_the_engine_keeps() -> None:
    assert OWNER_TOKENS_MAX <= ENTITIES_MAX / 10
    assert OWNER_BYTES_MAX <= ENTITIES_BYTES_MAX / 10


def test_an_owner_may_have_many_tokens_and_no_more_bytes_than_allowed() -> None:
    held: list[Entity] = []
    while True:
        new = token(len(held))
        try:
            check_limits(new, held)
        except RefusedError as refused:
            assert f"the tokens of {ALICE}" in str(refused)
            break
        held.append(new)
    assert 150 < len(held) < OWNER_TOKENS_MAX
    check_limits(token(0, BOB), held)


def test_the_number_of_tokens_is_bounded_too() -> None:
    tiny = [msgspec.structs.replace(one, values={"owner": ALICE}) for one in map(token, range(OWNER_TOKENS_MAX))]
    assert "1000 are allowed" in refusal(token(1), *tiny)


def test_the_renewers_of_one_token_are_bounded() -> None:
    check_limits(token(1, ALICE, BOB), [])
    assert "the renewers have" in refusal(token(1, ALICE, *(f"User:{'r' * 1_000}{n}" for n in range(5))))
    assert f"at most {RENEWERS_BYTES_MAX}" in refusal(token(1, ALICE, "User:" + "r" * RENEWERS_BYTES_MAX))


def test_other_entities_do_not_count() -> None:
    quota = Entity(entity_type="client_quota", names={"user": "alice"}, values={"owner": ALICE, "x": "y" * 60_000})
    check_limits(token(1), [quota])
