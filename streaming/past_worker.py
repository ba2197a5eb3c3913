"""The process that answers the live page's questions about the past: ``python -m streaming.past_worker BUS``.

Each line of its standard input is a question, and for each it writes a line: ``+`` and the answer in JSON, or ``-`` and
why there is none. It runs beside the engine at a lower priority, because decisions matter more. It ends when its input
does.
"""

import contextlib
import os
import sys
from typing import Any, BinaryIO

import msgspec

from bus.interface import Bus, BusError
from bus.open_bus import open_bus
from history.explanation import explain
from history.state_at import state_at
from sinks.web.past import PastError, shown, shown_topic
from state.stored.codec import CodecError

NICENESS = 10


class Question(msgspec.Struct):
    """What the state was at ``time_ms``; or else, as of ``seq``, why a partition is as it is, or all of a topic."""

    time_ms: int | None = None
    topic: str = ""
    # Negative stands for the whole topic.
    partition: int = -1
    # None stands for the newest decision.
    seq: int | None = None


def answer_of(bus: Bus, question: Question) -> object:
    """Answer a question. Raises ``PastError``, ``BusError`` or ``CodecError``."""
    if question.time_ms is None:
        return _explained(bus, question) if question.partition >= 0 else _topic(bus, question)
    seq = bus.seq_at(question.time_ms)
    if seq == 0:
        raise PastError("nothing from that time is left on the bus")
    found = state_at(bus, min(seq, bus.decided_seq()))
    return shown(found.seq, found.states[0].cluster, list(found.topics()))


def _topic(bus: Bus, question: Question) -> dict[str, Any]:
    decided = bus.decided_seq()
    found = state_at(bus, decided if question.seq is None else min(question.seq, decided))
    topic = next((one for one in found.topics() if one.topic == question.topic), None)
    if topic is None:
        raise PastError(f"there is no topic {question.topic}")
    return shown_topic(found.seq, found.states[0].cluster, topic)


def _explained(bus: Bus, question: Question) -> dict[str, Any]:
    topic, partition, decided = question.topic, question.partition, bus.decided_seq()
    seq = decided if question.seq is None else min(question.seq, decided)
    found = explain(bus, topic, partition, seq)
    if found is None:
        raise PastError(f"nothing that is left on the bus is about {topic}-{partition}")
    told = ("seq", "time_ms", "sentences", "times")
    steps = [{name: getattr(step, name) for name in told} for step in found.steps]
    return {"summary": found.summary, "steps": steps}


def serve(bus: Bus, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer ``questions`` to their end."""
    for line in questions:
        try:
            text = b"+" + msgspec.json.encode(answer_of(bus, msgspec.json.decode(line, type=Question)))
        except (PastError, BusError, CodecError) as error:
            text = b"-" + msgspec.json.encode(str(error))
        answers.write(text + b"\n")
        answers.flush()


def main() -> None:
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    bus = open_bus(sys.argv[1], create=False, read_only=True)
    try:
        serve(bus, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        bus.close()


if __name__ == "__main__":
    main()
