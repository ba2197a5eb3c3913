"""The fields that the filters of 'isrflow events' and 'isrflow decisions' read."""

from typing import Any

import msgspec


class Selected(msgspec.Struct):
    """The fields of an event or a decision by which it is chosen. An event may have anything in them."""

    kind: Any = ""
    reason: Any = ""
    topic: Any = None
    # Settings name their entity.
    entity: Any = None
    name: Any = None
    # Requests and answers about several topics or partitions name them in rows.
    topics: Any = None
    partitions: Any = None
    results: Any = None

    def is_about(self, topic: str) -> bool:
        """Return whether the fields name a topic, one of its partitions or its settings."""
        if self.topic == topic or (self.entity == "topic" and self.name == topic):
            return True
        listed = [rows for rows in (self.topics, self.partitions, self.results) if isinstance(rows, list)]
        return any(isinstance(row, dict) and row.get("topic") == topic for rows in listed for row in rows)


selected = msgspec.json.Decoder(Selected)
