"""The long-running job: claim the controller, run the query, publish ticks, and know when to stop."""

import contextlib
import functools
from collections.abc import Callable, Iterator

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.clock import steady_ms
from bus.interface import Bus, BusError, FencedError
from conf.phases import Phases
from conf.readiness import ReadyOnce
from conf.security.exposure import Protection
from conf.settings import Settings
from conf.spark_settings import is_local
from sinks.metrics import Metrics
from sinks.web.health import availability
from sinks.web.site import Site
from streaming.batch_listener import BatchListener
from streaming.batch_writer import BatchWriter
from streaming.bus_watch import BusWatch
from streaming.checkpoint import check_own, has_batches, settle
from streaming.checkpoint_lock import CheckpointLock, Holder, checkpoint_lock
from streaming.checkpoint_place import check_usable, checkpoint_of, files_place, stacks_file, usable
from streaming.cluster import await_executors, check_fits, ship_rooms
from streaming.deadlines import LateError
from streaming.decider import Decider
from streaming.follower import Follower
from streaming.hadoop_path import HadoopPath
from streaming.hang_guard import HangGuard
from streaming.job_errors import JobError, SupersededError
from streaming.level_watch import LevelWatch
from streaming.local_dir import local_dir, socket_dir
from streaming.metrics_endpoint import Endpoint
from streaming.past_process import PastProcess
from streaming.query import Commit
from streaming.rehearsal import rehearse
from streaming.retention import Passes, Retention
from streaming.session import SPARK_ERRORS, build_session, choose_java, launch, reason_of
from streaming.sources.interface import source_of
from streaming.standby import ActiveWatch, claim_in_turn, silence_ms
from streaming.stopping import StoppedError, StopSignals, kill_children
from streaming.tenure import TICKER_STOP_TIMEOUT_S, Tenure
from streaming.ticker import Ticker
from streaming.warm_up import warm_up
from streaming.watch import check_claim, check_parts

WATCH_INTERVAL_S = 0.2

logger = structlog.get_logger("isrflow.job")

_OPEN = Protection()


class Job:
    """One run of the engine: a claim, a query and a ticker."""

    def __init__(
        self,
        bus: Bus,
        settings: Settings,
        metrics: Metrics,
        protection: Protection = _OPEN,
        signals: StopSignals | None = None,
        *,
        standby: bool = False,
        reshards: bool = False,
    ) -> None:
        self._bus = bus
        self._settings = settings
        self._metrics = metrics
        self._site = Site(bus, metrics, PastProcess(settings.bus), protection, settings.cluster_name)
        self._endpoint = Endpoint(self._site, settings.metrics_host, settings.metrics_port)
        self._signals = signals or StopSignals()
        self._stopping = self._signals.stopping
        self._checkpoint = checkpoint_of(settings)
        self._files_place = files_place(settings)
        self._tenure = Tenure(bus, settings, reshards=reshards)
        # The watch looks at the bus for the first time now, so that a silence during Spark's start counts.
        self._watch_active = ActiveWatch(bus) if standby else None
        self._ready = ReadyOnce()
        self._phases = Phases(metrics.in_phase)

    def run(self) -> None:
        """Decide until a signal stops the job. Raises ``StoppedError`` if one came before it decided anything."""
        # This comes before Spark's start, which takes seconds, because a signal may come meanwhile.
        self._signals.obey()
        try:
            self._run()
        except Exception:
            # The call was broken off, so its failure is not worth reporting.
            if self._signals.has_broken_off:
                raise StoppedError from None
            raise

    def _run(self) -> None:
        try:
            with self._locked() as lock:
                self._prepare(lock)
        except FencedError as error:
            raise SupersededError(str(error)) from error
        except SupersededError:
            raise
        except (BusError, JobError) as error:
            # A job that was frozen in the middle of a call gets no answer, and may have been superseded meanwhile.
            self._check_not_superseded(str(error), error)
            raise
        except SPARK_ERRORS as error:
            reason = f"Spark failed: {reason_of(error)}"
            # A supervisor starts a failed job again, but must not start a superseded one: it would take the bus back.
            self._check_not_superseded(reason, error)
            raise JobError(reason) from error
        finally:
            self._endpoint.close()

    def _newer_claim(self) -> int:
        """Return the controller epoch that another job has claimed since, as far as the bus shows; 0 if none."""
        own = self._tenure.controller_epoch
        if own:
            with contextlib.suppress(BusError):
                claimed = self._bus.claimed_epoch()
                return claimed if claimed > own else 0
        return 0

    def _must_end(self) -> bool:
        return self._stopping.is_set() or self._newer_claim() > 0

    def _check_not_superseded(self, why: str, error: Exception) -> None:
        """Raise ``SupersededError``, with ``why`` this job ends, if the bus shows that another job has claimed."""
        if claimed := self._newer_claim():
            raise SupersededError(f"controller epoch {claimed} was claimed, and {why}") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[CheckpointLock]:
        with contextlib.ExitStack() as held:
            with usable(self._checkpoint):
                if not isinstance(self._checkpoint, HadoopPath):
                    check_usable(self._checkpoint)
                holder = Holder.of(self._bus, self._settings.bus_name)
                lock = held.enter_context(checkpoint_lock(self._files_place, holder))
            yield lock

    def _prepare(self, lock: CheckpointLock) -> None:
        """Try what may fail before the claim, so that a job that cannot run does not stop a running one."""
        succeeds = not lock.take_or_check()
        if self._watch_active:
            # The engine that decides needs the lock.
            lock.release()
            self._metrics.stands_by()
            self._endpoint.open_when_free()
        elif not succeeds:
            self._endpoint.open()
        self._phases.begin("starting Spark")
        choose_java()
        stacks = stacks_file(self._files_place)
        guard = HangGuard(self._must_end, self._signals.break_off)
        with local_dir(self._files_place.parent / "spark-local") as directory, socket_dir() as sockets, guard:
            session = None
            try:
                master = launch(self._settings, directory, stacks, sockets)
                check_fits(master, self._settings, source_of(self._bus))
                session = build_session(self._settings, directory, stacks, sockets)
                # Again after Spark, because Spark's own handler would raise KeyboardInterrupt in the middle of a batch.
                self._signals.obey()
                if not is_local(master):
                    ship_rooms(session, directory)
                    await_executors(session)
                self._phases.begin("warming Spark up")
                self._warm_up(session)
                if self._watch_active and is_local(master):
                    rehearse(session, self._settings, directory / "rehearsal")
                self._signals.finish_batches()
                follower = Follower(session, self._bus, self._settings, lock, directory)
                self._take_over(session, lock, succeeds, follower)
            finally:
                if self._signals.has_broken_off:
                    kill_children()
                elif session is not None:
                    session.stop()

    def _warm_up(self, session: SparkSession) -> None:
        if isinstance(self._checkpoint, HadoopPath):
            with usable(self._checkpoint):
                check_usable(self._checkpoint)
                check_own(self._checkpoint, self._bus)
        warm_up(session)

    def _take_over(self, session: SparkSession, lock: CheckpointLock, succeeds: bool, follower: Follower) -> None:
        with self._tenure.ending(), contextlib.ExitStack() as stack:
            stack.callback(follower.stop)
            try:
                if self._watch_active:
                    self._claim_in_turn(self._watch_active, session, lock, follower)
                else:
                    self._phases.begin("claiming the controller epoch")
                    self._tenure.begin()
                if not lock.wait(self._settings.takeover_timeout_ms, self._check_waiting):
                    logger.warning(
                        "the previous job keeps the checkpoint's lock and does not answer; going on without the lock"
                    )
                if succeeds and not self._watch_active:
                    self._endpoint.open_when_free()
                BatchListener(self._metrics, watches=source_of(self._bus).watches).listen_to(session)
                self._decide_until_stopped(session, lock, follower)
            except StoppedError:
                logger.info("stopping", controller_epoch=self._tenure.controller_epoch)

    def _claim_in_turn(
        self, active: ActiveWatch, session: SparkSession, lock: CheckpointLock, follower: Follower
    ) -> None:
        level = LevelWatch(self._bus)

        def meanwhile() -> None:
            self._endpoint.retry()
            level.look()
            if self._tenure.fits:
                follower.look(active.epoch)
                self._metrics.follows(follower.is_following)
            # This raises one of SPARK_ERRORS if the JVM is gone.
            _ = session.sparkContext.applicationId
            self._metrics.looked()
            self._look_whether_ready()

        self._metrics.loaded()
        self._phases.end()
        if not claim_in_turn(
            active, silence_ms(self._settings), self._stopping, meanwhile, self._tenure.begin, lock.is_left_in
        ):
            raise StoppedError

    def _decide_until_stopped(self, session: SparkSession, lock: CheckpointLock, follower: Follower) -> None:
        """Decide. If the engine stood still, claim once more and decide a late batch again, so that the rules know."""
        passes = Passes()
        while True:
            lock.decides_in(self._tenure.controller_epoch)
            take_query = None
            if follower.is_ready():
                self._phases.begin("taking over the state that it followed")
                take_query = functools.partial(follower.let_decide, self._tenure.claim)
            else:
                self._phases.begin("checking its checkpoint")
                follower.stop()
                with usable(self._checkpoint):
                    settle(self._checkpoint, self._bus, self._settings.shuffle_partitions, self._check_waiting)
                    source = "its checkpoint" if has_batches(self._checkpoint) else "the bus"
                self._phases.begin(f"restoring the state from {source}")
            try:
                self._decide(session, lock, passes, take_query)
                return
            except LateError as error:
                logger.warning("a batch was too late; deciding it again after another claim", why=str(error))
            self._check_waiting()
            self._tenure.begin()

    def _look_whether_ready(self) -> None:
        """Tell the service manager once this job decides, or could at once."""
        is_ready = availability(self._metrics.snapshot, steady_ms()).ok
        self._ready.look(is_ready)
        if is_ready:
            self._phases.end()

    def _check_waiting(self) -> None:
        if self._stopping.is_set():
            raise StoppedError
        check_claim(self._bus, self._tenure.claim)

    def _decide(
        self,
        session: SparkSession,
        lock: CheckpointLock,
        passes: Passes,
        take_query: Callable[[Commit], StreamingQuery] | None,
    ) -> None:
        ticker = self._tenure.ticker
        write = BatchWriter(self._bus, self._settings, self._tenure, self._metrics, self._site).write
        retention = Retention(self._bus, self._settings, self._tenure.controller_epoch, passes)
        with Decider(session, self._bus, self._settings, write, self._check_waiting, take_query=take_query) as decider:
            self._metrics.took_over(self._tenure.controller_epoch, self._bus.decided_seq())
            self._site.took_over()
            retention.start()
            try:
                self._watch(decider, ticker, retention, lock)
            finally:
                self._metrics.gave_up()
                retention.stop()
                self._tenure.stop_ticks()
                retention.join(TICKER_STOP_TIMEOUT_S)

    def _watch(self, decider: Decider, ticker: Ticker, retention: Retention, lock: CheckpointLock) -> None:
        bus_watch = BusWatch(self._bus, self._metrics)
        while not self._stopping.wait(WATCH_INTERVAL_S):
            check_claim(self._bus, self._tenure.claim)
            lock.take()
            self._endpoint.retry()
            bus_watch.look()
            self._look_whether_ready()
            check_parts(self._bus, self._tenure.claim, ticker, retention, decider)
        logger.info("stopping", controller_epoch=self._tenure.controller_epoch)
