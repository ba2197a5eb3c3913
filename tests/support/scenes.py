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
    if kind == "crashes":
        return _crashes(a, b, c)
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


def _crashes(topic: int, b: int, c: int) -> list[Draw]:
    """Fence two of four brokers, let the other two crash, and let all of them report their logs."""
    ready: list[Draw] = [("started", 4, 1, 0), ("raise", 0, 0, 0)]
    # Brokers 2 and 4 have a directory, and their next processes have it too.
    ready += [("register", broker, 1, 0) for broker in (1, 3)] + [("beat", broker, 0, 0) for broker in range(4)]
    ready += [("create", topic, 3, c), *[("offset", part, replica, 2) for part in (0, 1) for replica in range(4)]]
    fenced: list[Draw] = [("tick", 0, 0, 6), ("beat", 0, 8, 0), ("beat", 2, 8, 0)]
    crashed: list[Draw] = [
        ("register", 1, 7, 0),
        ("beat", 3, 8, 0),
        *[("beat", 1, 0, 0)] * (b % 2),
        ("register", 3, 7, 2),
    ]
    logs: list[Draw] = [("log", part, replica, (b + replica) % 5) for part in (0, 1) for replica in range(4)]
    return [*ready, *fenced, ("strategy", topic, 0, c), *crashed, *logs, ("beat", 3, 0, 0), ("beat", 1, 0, 0)]


def _blackout(survivors: int, pause: int) -> list[Draw]:
    """End the sessions of several brokers at one tick. An unknown broker's heartbeat advances time."""
    beats: list[Draw] = [("beat", broker, 0, 0) for broker in range(4) if _SURVIVE[survivors] >> broker & 1]
    return [("beat", 11, 0, _LONG), ("tick", 0, 0, 0), *beats, ("tick", 0, 0, 8 + pause % 3)]


# The brokers that survive, as bits: none, each alone, and some pairs and threes.
_SURVIVE = (0, 1, 2, 4, 8, 1, 2, 4, 8, 3, 12, 7)
