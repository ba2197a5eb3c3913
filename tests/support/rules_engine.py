"""The engine without Spark: the rules alone, in a thread, on a bus.

On the bus it does what the job does: it claims an epoch, publishes ticks, and writes each batch's decisions
and state in one transaction.
"""

import threading
import time
from pathlib import Path

import msgspec

from bus.clock import now_ms
from bus.decided_runs import DecidedRuns
from bus.image import read_image
from bus.interface import Bus, FencedError, Page
from bus.open_bus import open_bus
from controller_logic.replay import logged
from controller_logic.step import step
from state.canonical import numbered_runs
from state.cluster import MappedTopics, State
from state.events import Tick
from state.policy import policy_of
from state.runs import parts_of
from state.stored.codec import encode_cluster, encode_topics
from tests.support.waiting import TIMEOUT_S

POLL_S = 0.02
TICK_MS_BUSY = 100
TICK_MS_IDLE = 500
BATCH = 5_000
CLAIM_TIMEOUT_S = 120.0


class RulesEngine:
    """An engine on a bus; ``batch_ms`` delays batches as Spark would. On Kafka it leaves reports of log ends aside."""

    def __init__(self, batch_ms: int = 0) -> None:
        self._batch_s = batch_ms / 1000
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._claimed = threading.Event()
        self.error: BaseException | None = None

    def start(self, place: Path | str, **settings: object) -> None:
        """Claim the bus at a path or URL, and decide under ``settings`` (Kafka's names, dots as underscores)."""
        named = {name.replace("_", "."): str(value).lower() for name, value in settings.items()}
        self._thread = threading.Thread(target=self._run, args=(str(place), named), name="rules-engine", daemon=True)
        self._thread.start()
        assert self._claimed.wait(CLAIM_TIMEOUT_S), self.error

    def stop(self) -> None:
        """Stop deciding; undecided events stay on the bus for the next engine."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT_S)
            assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def _run(self, url: str, settings: dict[str, str]) -> None:
        bus = open_bus(url)
        try:
            self._decide(bus, settings)
        except FencedError:
            pass  # another engine took over
        except BaseException as error:
            self.error = error
        finally:
            bus.close()

    def _decide(self, bus: Bus, settings: dict[str, str]) -> None:
        claim = bus.claim("rules-engine", settings, now_ms())
        self._claimed.set()
        image = bus.image()
        held = read_image(image)
        state = State(held.cluster, MappedTopics({topic.topic: topic for topic in held.topics}))
        policy = policy_of({})
        ticked_at, ticked_seq, after = 0.0, image.seq, image.seq
        while not self._stopping.is_set():
            last = bus.last_seq()
            busy = bus.log_ends_came(ticked_seq)
            if time.monotonic() - ticked_at >= (TICK_MS_BUSY if busy else TICK_MS_IDLE) / 1000:
                tick = Tick(time_ms=now_ms(), controller_epoch=claim.controller_epoch)
                last = ticked_seq = bus.publish_own([msgspec.json.encode(tick)])
                ticked_at = time.monotonic()
            if last == after:
                time.sleep(POLL_S)
                continue
            entries = bus.read(after, min(last, after + BATCH))
            if not entries:
                # On Kafka the marker of a transaction takes an offset, so no event has this seq.
                # But events behind an open transaction have a seq, and cannot be read yet.
                after = max(after, min(last, bus.last_seq()))
                continue
            outcome = step(state, list(logged(entries)), policy)
            state, after = outcome.state, entries[-1].seq
            decisions = DecidedRuns(numbered_runs(parts_of(outcome.said, state.cluster.level)))
            pages = [Page(0, -1, encode_cluster(state.cluster))]
            if outcome.changes:
                topics = [topic for name in state.topics.names() if (topic := state.topics.get(name))]
                pages.append(Page(0, 0, encode_topics(topics)))
            if self._batch_s:
                time.sleep(self._batch_s)
            bus.commit(claim.controller_epoch, after, decisions, pages)
