"""What a claim found undecided is read from the event log."""

import msgspec

from state.found import Found, found_in, found_ms


def claim(**fields: int | None) -> bytes:
    claimed = {"kind": "controller_started", "time_ms": 50, "controller_id": "c", "controller_epoch": 1}
    return msgspec.json.encode(claimed | fields)


def test_claims_say_what_they_found() -> None:
    other = msgspec.json.encode({"kind": "delete_topic", "time_ms": 1, "topic": "decided_seq"})
    entries = [
        (4, claim(decided_seq=2), None, None),
        (5, claim(decided_seq=None), None, True),
        (6, other, None, None),
        # The bus did not know this one as a claim.
        (7, claim(decided_seq=1), None, False),
        (9, claim(decided_seq=4), 70, True),
    ]
    assert found_in(entries) == [Found(2, 4, 50), Found(4, 9, 70)]


def test_an_event_was_found_undecided_last_by_the_latest_claim_after_it() -> None:
    found = [Found(2, 9, 50), Found(4, 9, 70), Found(6, 9, 60)]
    assert [found_ms(seq, found) for seq in (2, 3, 5, 8, 9)] == [None, 50, 70, 70, None]
