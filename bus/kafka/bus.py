"""The bus on Kafka: topics for events, decisions and state, in place of tables."""

import time
from collections.abc import Sequence
from functools import partial

from bus import pieces
from bus.clock import now_ms
from bus.decided_runs import DecidedRuns, runs_in
from bus.interface import (
    DECISIONS_BYTES_MAX,
    Blocked,
    Claim,
    Decided,
    DecidedColumns,
    DivergedError,
    Image,
    Page,
)
from bus.kafka.connection import AWAY_TIMEOUT_S, RETRY_PAUSE_S, Connection
from bus.kafka.controller import Controller
from bus.kafka.decision_reader import DecisionReader
from bus.kafka.history import KafkaHistory
from bus.kafka.log_end_watch import LogEndWatch
from bus.kafka.mark import Mark
from bus.kafka.publisher import Publisher
from bus.kafka.state_reader import read_state
from bus.kafka.topics import open_topics
from bus.kafka.undecidable import Undecidable
from bus.local_index import LocalIndex
from conf.cache import cache_dir
from isrflow.bus_url import KAFKA
from isrflow.engine_only import refuse_engine_kinds
from isrflow.kafka.address import parse
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.seqs import seq_of
from state.stored.codec import holds_the_same


class KafkaBus(KafkaHistory):
    """The ``Bus`` on five topics. An event's seq comes from its offset (``seqs``).

    It differs from the embedded bus where Kafka does. Seqs have gaps. A commit can be read only some milliseconds after
    it was made. Several threads may use one instance. An instance commits only for the epoch that it claimed itself.
    """

    kind = KAFKA.name

    def __init__(self, url: str, *, create: bool = True, replication_factor: int = 0) -> None:
        # Only an engine makes a bus.
        connection = Connection(parse(url), AWAY_TIMEOUT_S if create else None)
        open_topics(connection, create=create, replication_factor=replication_factor)
        super().__init__(connection)
        self._undecidable = Undecidable(self._connection)
        self._publisher = Publisher(self._connection)
        self._log_end_watch = LogEndWatch(self._connection)
        self._controller = Controller(self._connection)
        self._decisions = DecisionReader(self._connection, self._controller.mark)

    def publish(self, events: Sequence[bytes]) -> int:
        refuse_engine_kinds(events)
        return self.publish_own(events)

    def publish_own(self, events: Sequence[bytes]) -> int:
        offset = self._publisher.publish(events)
        return self.last_seq() if offset is None else seq_of(offset)

    def due_seq(self, after: int) -> int:
        return max(after, self.last_seq())

    def log_ends_came(self, after: int) -> bool:
        return self._log_end_watch.came(after)

    def claim(
        self, controller_id: str, settings: dict[str, str], time_ms: int, after_epoch: int | None = None
    ) -> Claim:
        return self._controller.claim(controller_id, settings, time_ms, after_epoch)

    def tell_undecided(self, controller_epoch: int, tick: bytes) -> int | None:
        return self._controller.tell_undecided(controller_epoch, tick)

    def await_writable(self) -> None:
        """Do nothing, because no process can lock a bus on Kafka."""

    def resign(self, controller_epoch: int) -> None:
        self._controller.resign(controller_epoch)

    def resigned_epoch(self) -> int:
        return self._controller.mark().resigned

    def newest_tick(self) -> int:
        return self._undecidable.newest_tick()

    def blocked(self) -> Blocked | None:
        return self._undecidable.blocked()

    def blocker(self) -> str:
        return self._undecidable.blocker()

    @property
    def held_claim(self) -> Claim:
        """This process's last claim, even if another job has claimed since. Its epoch is -1 if there is none."""
        return self._controller.held

    def claimed_epoch(self) -> int:
        return self._controller.mark().controller_epoch

    def claim_seq(self) -> int:
        claims = self._controller.mark().claims
        return seq_of(claims[-1][1]) if claims else 0

    def bus_id(self) -> int:
        return self._controller.mark().bus_id

    def identities(self, name: str) -> tuple[str, ...]:
        # The number exists only after the first claim. The name may differ, because a process may name any server.
        number = self.bus_id()
        return (name, str(number)) if number else (name,)

    def commit(self, controller_epoch: int, through: int, decisions: Sequence[Decided], pages: Sequence[Page]) -> None:
        runs = runs_in(decisions)

        def check_again(before: Mark) -> None:
            self._check_same(list(DecidedRuns([run for run in runs if run.seq <= before.through])))
            if through == before.through:
                self._check_same_state(through, pages)

        self._controller.commit(controller_epoch, through, runs, pages, check_again)

    def _check_same(self, again: list[Decided]) -> None:
        """Check that a batch that is repeated after a kill has the same decisions as the first time."""
        if not again:
            return
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while not self._are_readable(self._controller.mark()) and time.monotonic() < deadline:
            time.sleep(RETRY_PAUSE_S)
        written: set[Decided] = set()
        after = (again[0].seq, again[0].idx - 1)
        while len(written) < len(again) and (some := self.decisions(after, len(again) - len(written))):
            written.update(some)
            after = (some[-1].seq, some[-1].idx)
        for decided in again:
            if decided not in written:
                raise DivergedError(f"bus {self.address}: decision ({decided.seq}, {decided.idx}) came out differently")

    def _check_same_state(self, through: int, pages: Sequence[Page]) -> None:
        """Check the state too, because a repeated batch may lack decisions that it made the first time."""
        image = self.image()
        written = {(page.shard, page.page): page.body for page in image.pages}
        for page in pages if image.seq == through else ():
            body = written.get((page.shard, page.page))
            if body is None or not holds_the_same(body, page.body):
                raise DivergedError(
                    f"bus {self.address}: page ({page.shard}, {page.page}) of the state came out differently"
                )

    def decided_seq(self) -> int:
        mark = self._controller.mark()
        return mark.through if self._are_readable(mark) else mark.before

    def committed_seq(self) -> int:
        return self._controller.mark().through

    def _are_readable(self, mark: Mark) -> bool:
        """Return whether the decisions that a mark refers to can be read yet."""
        return self._connection.end_offset(self.address.decisions) >= mark.decisions_end

    def decisions(
        self, after: tuple[int, int], limit: int, bytes_max: int = DECISIONS_BYTES_MAX, *, passing_over: bool = False
    ) -> list[Decided]:
        return self._decisions.decisions(after, limit, bytes_max, passing_over=passing_over)

    def decided_columns(self, after: tuple[int, int], limit: int) -> list[Decided | DecidedColumns]:
        return self._decisions.columns(after, limit)

    def seqs_about(self, topic: str, partition: int, before: int, limit: int) -> list[int]:
        index = LocalIndex(cache_dir() / f"partitions-{self.bus_id()}.db")
        read = partial(self.decisions, passing_over=True)
        gone, _ = self._decisions.newest_gone()
        return index.seqs_about(read, gone, self.decided_seq(), topic, partition, before, limit)

    def changed(self) -> bool:
        return self._decisions.changed()

    def image(self) -> Image:
        mark, pages = read_state(self._connection, self._controller.mark())
        self._controller.check_not_behind(mark)
        return Image(mark.through, pieces.joined(Page(*key, body) for key, body in pages.items()))

    def replace_image(self, controller_epoch: int, image: Image) -> None:
        _, former = read_state(self._connection, self._controller.mark())
        self._controller.replace_image(controller_epoch, image, former)

    def layouts(self) -> int:
        return self._controller.mark().layouts

    def forget(self, through: int) -> int:
        # Only the last batch can be repeated after a kill, and it reads its events again.
        return self._forget(min(through, self._controller.mark().before))

    def keep_snapshot(self, controller_epoch: int) -> bool:
        self._controller.check_held(controller_epoch)
        image = self.image()
        return bool(image.pages) and self._snapshots.write(image, now_ms())

    def close(self) -> None:
        self._publisher.close()
        self._controller.close()
        self._undecidable.close()
        self._log_end_watch.close()
        self._events.close()
        self._decisions.close()
