"""From record batches to what the controller did, and why.

A batch is not an operation. The controller collects records for up to 25 ms (``controller.quorum.append.linger.ms``),
all with the time of the first one. An operation of more than ``PIECE_RECORDS`` records goes into several batches. But
each operation writes its records in one order, so its borders are found again:

    partition changes, then a fence, a failed directory, an unregistration, or a restart after an unclean stop
    a broker's unfencing or controlled shutdown, then partition changes
    a topic, its settings, its partitions
    records of one kind

The epoch of a registration tells where its operation began.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from brokers.shadow.causes import Effect, Why, is_elected, takes_out, why_alone, why_fenced, why_registered
from brokers.shadow.cluster_image import ClusterImage
from brokers.shadow.operation import At, Note, Operation, at, operation
from brokers.shadow.record_kinds import CAUSES, CHANGE, IN_RUNS, OF_BROKERS, OF_TOPICS, SILENT, is_in_run, is_of_topic
from brokers.shadow.replay import Replay
from brokers.shadow.source import Batch, Damage, Gap, Read, Snapshot
from brokers.shadow.touched import Touched, difference
from brokers.shadow.transactions import Transactions
from brokers.wire.metadata.record_frame import Record
from state.observed_events import Cause

# QuorumController.MAX_RECORDS_PER_BATCH
PIECE_RECORDS = 10_000
_FENCED, _UNFENCED = 1, -1


class _Change(NamedTuple):
    at: At
    effect: Effect


class _Opened(NamedTuple):
    """An operation that began with a record about a broker, and whose partition changes follow."""

    places: list[At]
    why: Why
    belongs: Callable[[Effect], bool]
    touched: Touched


def unseen(broker: int, time_ms: int) -> int | None:
    """Return None: fetches of brokers are not seen."""
    return None


class Operations:
    """Cuts what a reader hands on into operations, and keeps the image of the cluster.

    ``silent_ms(broker, time_ms)`` tells how long a broker had not fetched at a time, if that was seen.
    """

    def __init__(self, silent_ms: Callable[[int, int], int | None] = unseen) -> None:
        self._silent_ms = silent_ms
        self._replay = Replay()
        self._transactions = Transactions()
        self._is_new = True
        self._gap: Gap | None = None
        # Changes that may belong to a record that is still to come.
        self._waiting: list[_Change] = []
        self._opened: _Opened | None = None

    @property
    def image(self) -> ClusterImage:
        """The cluster after the newest record."""
        return self._replay.image

    @property
    def notes(self) -> list[Note]:
        """What the log should not have."""
        return self._replay.notes

    def take(self, one: Read) -> Iterator[Operation]:
        """Take what was read next, and yield the operations that are whole."""
        match one:
            case Batch():
                yield from self._tell_gap()
                for settled in self._transactions.settled(one):
                    if isinstance(settled, Gap):
                        yield from self.take(settled)
                        yield from self._tell_gap()
                    else:
                        yield from self._take_batch(settled)
                self._is_new = False
            case Snapshot():
                yield from self._drop_transaction()
                yield from self._finished()
                yield self._replaced(one)
                self._is_new = False
            case Gap():
                yield from self._tell_gap()
                yield from self._drop_transaction()
                yield from self._finished()
                self.notes.append(Note(one.start, f"records up to offset {one.end} are missing: {one.why}"))
                self._gap = one
            case Damage():
                self.notes.append(Note(one.offset, one.what))

    def end(self) -> Iterator[Operation]:
        """Yield what is left at the end of the log."""
        yield from self._tell_gap()
        yield from self._drop_transaction()
        yield from self._finished()

    def _drop_transaction(self) -> Iterator[Operation]:
        if (begins_at := self._transactions.begins_at) is not None:
            self.notes.append(Note(begins_at, "a transaction begins here and does not end, so it does not count"))
        for batch in self._transactions.dropped():
            yield from self._take_batch(batch)

    def _replaced(self, snapshot: Snapshot) -> Operation:
        before, self._replay.image = self.image, ClusterImage(snapshot.records)
        self._replay.at = At(max(snapshot.offset - 1, 0), snapshot.epoch, snapshot.time_ms)
        cause = Cause.seed if self._is_new else Cause.gap
        self._gap = None
        return operation([self._replay.at], Why(cause), difference(before, self.image))

    def _tell_gap(self) -> Iterator[Operation]:
        """Note a gap that no snapshot closes."""
        if (gap := self._gap) is not None:
            self._gap = None
            places = [self._replay.at._replace(offset=offset) for offset in (gap.start, gap.end - 1)]
            yield operation(places, Why(Cause.gap), Touched())

    def _take_batch(self, batch: Batch) -> Iterator[Operation]:
        if batch.is_control:
            yield from self._finished()
            for place, record in enumerate(batch.records):
                yield self._controlled(at(batch, place), record)
            return
        place = 0
        while place < len(batch.records):
            done, place = self._take_record(batch, place)
            yield from done
        if len(batch.records) < PIECE_RECORDS:
            # An operation that goes on in the next batch would fill this one.
            yield from self._finished()

    def _controlled(self, here: At, record: Record) -> Operation:
        touched = Touched()
        self._replay.at = here
        if record.name == "LeaderChangeMessage":
            touched.leads(record.values["LeaderId"], here.epoch)
            return operation([here], Why(Cause.controller_changed), touched)
        touched.count(record)
        return operation([here], Why(Cause.other), touched)

    def _take_record(self, batch: Batch, place: int) -> tuple[list[Operation], int]:
        """Take the record at a place, with those after it that belong to it, and return the place after them."""
        record, here = batch.records[place], at(batch, place)
        if record.name == CHANGE:
            return self._take_change(here, record), place + 1
        if record.name in OF_BROKERS:
            return self._about_broker(here, record), place + 1
        if record.name in SILENT:
            self._replay.at = here
            return self._finished(), place + 1
        if record.name in OF_TOPICS:
            first = record
            why = Why(Cause.topic_created if record.name == "TopicRecord" else Cause.partitions_added)
            return self._run(batch, place, why, lambda following: is_of_topic(following, first))
        cause = CAUSES.get(record.name, Cause.other)
        return self._run(batch, place, Why(cause), lambda following: is_in_run(following, cause))

    def _take_change(self, here: At, record: Record) -> list[Operation]:
        effect = self._replay.effect_of(here, record)
        if effect is None:
            return []
        if self._opened is not None and self._opened.belongs(effect):
            self._opened.places.append(here)
            self._replay.touch(self._opened.touched, effect)
            return []
        done = self._finished() if self._opened is not None else []
        self._waiting.append(_Change(here, effect))
        return done

    def _run(
        self, batch: Batch, place: int, why: Why, belongs: Callable[[Record], bool]
    ) -> tuple[list[Operation], int]:
        """Take the neighbours that belong together."""
        done, touched, end = self._finished(), Touched(), place
        while end < len(batch.records) and belongs(batch.records[end]):
            self._replay.touch_with(touched, at(batch, end), batch.records[end])
            end += 1
        if not touched.is_empty:
            done.append(operation([at(batch, place), at(batch, end - 1)], why, touched))
        return done, end

    def _about_broker(self, here: At, record: Record) -> list[Operation]:
        values = record.values
        broker = values["Id"] if "Id" in values else values["BrokerId"]
        before = self.image.brokers.get(broker)
        told = {"FenceBrokerRecord": _FENCED, "UnfenceBrokerRecord": _UNFENCED}
        fenced = told.get(record.name, values.get("Fenced", 0))
        if record.name == "RegisterBrokerRecord":
            # The operation began at the offset that is the broker's new epoch.
            cut = sum(one.at.offset < values["BrokerEpoch"] for one in self._waiting)
            return self._ended(here, record, cut, why_registered(before, values, cut < len(self._waiting)))
        if before is None:
            self._replay.applied(here, record)
            return self._finished()
        if record.name == "UnregisterBrokerRecord":
            return self._ended(here, record, self._cut(broker), Why(Cause.broker_unregistered, broker=broker))
        if fenced == _FENCED:
            cut = self._cut(broker)
            led = any(one.effect.before.leader == broker for one in self._waiting[cut:])
            return self._ended(here, record, cut, why_fenced(before, led, self._silent_ms(broker, here.time_ms)))
        if fenced == _UNFENCED:
            return self._opens(here, record, Why(Cause.broker_ready, broker=broker), is_elected)
        if values["InControlledShutdown"]:
            why = Why(Cause.controlled_shutdown, broker=broker)
            return self._opens(here, record, why, lambda effect: takes_out(effect, broker))
        if values["LogDirs"]:
            return self._ended(here, record, self._cut(broker), Why(Cause.directory_failed, broker=broker))
        if tuple(values["CordonedLogDirs"] or ()) == before.cordoned_log_dirs:
            # Since Kafka 4.3 a broker says so once in each registration, even if none is cordoned.
            self._replay.applied(here, record)
            return self._finished()
        return self._ended(here, record, len(self._waiting), Why(Cause.directories_cordoned, broker=broker))

    def _cut(self, broker: int) -> int:
        """Return the place from which on the waiting changes took a broker out."""
        cut = len(self._waiting)
        while cut and takes_out(self._waiting[cut - 1].effect, broker):
            cut -= 1
        return cut

    def _ended(self, here: At, record: Record, cut: int, why: Why) -> list[Operation]:
        """End an operation whose partition changes came before its record about a broker."""
        mine, self._waiting = self._waiting[cut:], self._waiting[:cut]
        done, touched = self._finished(), Touched()
        for one in mine:
            self._replay.touch(touched, one.effect)
        self._replay.touch_broker(touched, here, record, why.broker)
        return [*done, operation([*(one.at for one in mine), here], why, touched)]

    def _opens(self, here: At, record: Record, why: Why, belongs: Callable[[Effect], bool]) -> list[Operation]:
        """Begin an operation whose partition changes follow its record about a broker."""
        done, touched = self._finished(), Touched()
        self._replay.touch_broker(touched, here, record, why.broker)
        self._opened = _Opened([here], why, belongs, touched)
        return done

    def _finished(self) -> list[Operation]:
        """Return what is whole because something else follows."""
        done: list[Operation] = []
        if (opened := self._opened) is not None:
            self._opened = None
            done.append(operation(opened.places, opened.why, opened.touched))
        waiting, self._waiting = self._waiting, []
        group, why = list[_Change](), Why(Cause.other)
        for one in waiting:
            now = why_alone(one.effect)
            if group and (now != why or now.cause not in IN_RUNS):
                done.append(self._alone(group, why))
                group = []
            group.append(one)
            why = now
        if group:
            done.append(self._alone(group, why))
        return done

    def _alone(self, group: list[_Change], why: Why) -> Operation:
        touched = Touched()
        for one in group:
            self._replay.touch(touched, one.effect)
        return operation([one.at for one in group], why, touched)
