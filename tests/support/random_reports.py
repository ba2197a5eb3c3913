"""Random reports of many replicas, made from random reports of single replicas."""

from collections.abc import Callable
from typing import Any

from state.cluster import State

Maker = Callable[[State, int, int, int], tuple[str, dict[str, Any]]]


def of_many(single: Maker) -> Maker:
    """Return a function that makes one event from the single reports of a broker, sometimes of one partition."""

    def reports(state: State, a: int, b: int, c: int) -> tuple[str, dict[str, Any]]:
        first = single(state, a, b, c)[1]
        topics: dict[tuple[str, str | None], list[list[Any]]] = {}
        for place in range(24):
            told = single(state, place % 12, (b + place // 12) % 12, (c + place) % 12)[1]
            if told["broker"] == first["broker"]:
                row = [told["partition"], told["leader_epoch"], told["outcome"], told["error"]]
                topics.setdefault((told["topic"], told.get("topic_id")), []).append(row[: 4 - place % 2])
        if not topics:
            return "tick", {}
        named = [{"topic": name, "topic_id": topic_id, "partitions": rows} for (name, topic_id), rows in topics.items()]
        if c == 7:
            named[-1]["topic_id"] = "another"
        asked = {"request_id": a} if c % 2 else {}
        return "replica_reports", {
            "broker": first["broker"],
            "broker_epoch": first["broker_epoch"],
            "topics": named,
        } | asked

    return reports
