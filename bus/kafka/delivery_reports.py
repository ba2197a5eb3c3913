"""The delivery reports of records that were sent together."""

from confluent_kafka import KafkaError, KafkaException, Message


class DeliveryReports:
    """The delivery reports so far. Pass ``add`` to the producer."""

    def __init__(self) -> None:
        self._error: KafkaError | None = None
        self._offset = -1
        self._time_ms = 0

    def add(self, error: KafkaError | None, message: Message) -> None:
        """Add the report of one record."""
        self._error = self._error or error
        self._offset = max(self._offset, message.offset() or 0)
        self._time_ms = max(self._time_ms, message.timestamp()[1])

    def last_offset(self) -> int:
        """Return the greatest offset. Raises ``KafkaException`` if any record was not written."""
        if self._error is not None:
            raise KafkaException(self._error)
        return self._offset

    def last_time_ms(self) -> int:
        """Return the greatest timestamp of a record, as its topic stores it."""
        return self._time_ms
