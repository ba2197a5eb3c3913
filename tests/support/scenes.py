"""Scenes of random logs: sequences that single draws would rarely produce."""

Draw = tuple[str, int, int, int]

# The index of the longest pause.
_LONG = 12


def events_of(draw: Draw) -> list[Draw]:
    """Replace a draw that names a scene by the draws of that scene."""
    kind, a, b, c = draw
    if kind == "blackout":
        return _blackout(a, c)
    if kind == "second_move":
        return _second_move(a, b, c)
    if kind == "namesake":
        return _namesake(a, b, c)
    return [draw]


def _second_move(partition: int, b: int, c: int) -> list[Draw]:
    """Complete a reassignment, begin another before the removed logs are gone, and let several brokers die."""
    all_beat: list[Draw] = [("beat", broker, 0, 0) for broker in range(4)]
    first: list[Draw] = [("reassign", partition, b % 4, 2), ("alter_isr", partition, 0, 0)]
    second: list[Draw] = [("alter_isr", partition, c, 0), ("reassign", partition, (b + c) % 4, b % 3)]
    return [*all_beat, *first, *second, *_blackout((b + c) % 12, 0)]


def _namesake(topic: int, b: int, c: int) -> list[Draw]:
    """Delete a topic that has reports, create it again, and let reports about the deleted one arrive late."""
    reports: list[Draw] = [("offset", topic, replica, 11 - c % 3) for replica in range(4)]
    deleted: list[Draw] = [("delete", topic, 0, 0), *[("deleted", 0, 0, 0)] * 12]
    late: list[Draw] = [("late", 0, (b + nth) % 6, 0) for nth in range(4)]
    return [*reports, *deleted, ("create", topic, b, c), *late, ("tick", 0, 0, 8)]


def _blackout(survivors: int, pause: int) -> list[Draw]:
    """End the sessions of several brokers at one tick. An unknown broker's heartbeat advances time."""
    beats: list[Draw] = [("beat", broker, 0, 0) for broker in range(4) if _SURVIVE[survivors] >> broker & 1]
    return [("beat", 11, 0, _LONG), ("tick", 0, 0, 0), *beats, ("tick", 0, 0, 8 + pause % 3)]


# The brokers that survive, as bits: none, each alone, and some pairs and threes.
_SURVIVE = (0, 1, 2, 4, 8, 1, 2, 4, 8, 3, 12, 7)
