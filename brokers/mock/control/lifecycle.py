"""The broker's registration with the controller (Kafka's ``BrokerLifecycleManager``).

registering --answer--> starting --decided active--> running --stop--> shutting down --allowed--> stopped
     ^                                                  |
     +---- unregistered, or its epoch was refused ------+
"""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from enum import Enum

import structlog

from brokers.mock.control.outbox import Outbox
from brokers.mock.settings import Identity, Settings
from bus.clock import now_ms
from state.decisions import Answer, AnyDecision, BrokerDecision
from state.events import BrokerHeartbeat, BrokerRegister
from state.level import NEWEST_LEVEL
from state.registration import Listener

logger = structlog.get_logger()

REGISTER_AGAIN_MS = 500
_LOST = frozenset({"STALE_BROKER_EPOCH", "BROKER_ID_NOT_REGISTERED"})


class LifecycleState(Enum):
    """The state of a broker's registration, as far as the broker knows."""

    registering = "registering"
    starting = "starting"
    running = "running"
    shutting_down = "shutting_down"
    stopped = "stopped"


class ReplacedError(Exception):
    """Another process registered under this broker's id, so this one must stop."""


class Lifecycle:
    """A broker's registration: obtain it, keep the session alive, and at the end ask for permission to stop.

    ``incarnation`` stays the same for the life of the process, so a second registration amends the first. A heartbeat
    asks for an answer only while the broker is not active, or after the engine refused an event. So the decision log
    of a quiet cluster stays quiet.
    """

    def __init__(self, identity: Identity, outbox: Outbox, settings: Settings, previous_broker_epoch: int) -> None:
        self._identity = identity
        self._outbox = outbox
        self._settings = settings
        self._previous_broker_epoch = previous_broker_epoch
        self._incarnation = uuid.uuid4().hex
        self._port = 0
        self._request_id = ""
        self._changed = asyncio.Event()
        self._refused = ""
        self._replaced = ""
        self.state = LifecycleState.registering
        self.broker_epoch = -1

    async def register(self, port: int) -> int:
        """Register, and return the broker epoch once the engine answers. Raises ``TimeoutError``."""
        self._port = port
        async with asyncio.timeout(self._settings.initial_broker_registration_timeout_ms / 1000):
            self._register()
            while self.state is LifecycleState.registering:
                await self._change()
                if self._refused:
                    logger.warning("registration refused", error=self._refused)
                    await asyncio.sleep(REGISTER_AGAIN_MS / 1000)
                    self._register()
        return self.broker_epoch

    def _register(self) -> None:
        self._refused = ""
        self._request_id = uuid.uuid4().hex
        listener = Listener(name="PLAINTEXT", host=self._identity.host, port=self._port)
        self._outbox.send(
            BrokerRegister(
                time_ms=now_ms(),
                request_id=self._request_id,
                broker=self._identity.broker,
                incarnation=self._incarnation,
                rack=self._identity.rack,
                listeners=(listener,),
                log_dirs=(str(self._identity.directory.resolve()),),
                previous_broker_epoch=self._previous_broker_epoch,
                level=NEWEST_LEVEL,
            )
        )

    async def run(self) -> None:
        """Send heartbeats until cancelled. Raises ``ReplacedError`` when another process has this id."""
        interval = self._settings.broker_heartbeat_interval_ms / 1000
        while True:
            if self._replaced:
                raise ReplacedError(self._replaced)
            if self.state is LifecycleState.stopped:
                return
            if self.state is LifecycleState.registering and self._refused:
                self._register()
            elif self.state is not LifecycleState.registering:
                self._heartbeat()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await self._change()

    def _heartbeat(self) -> None:
        shutting_down = self.state is LifecycleState.shutting_down
        ask = self.state is LifecycleState.starting or (not shutting_down and self._outbox.has_refused)
        self._outbox.send(
            BrokerHeartbeat(
                time_ms=now_ms(),
                request_id=uuid.uuid4().hex if ask else None,
                broker=self._identity.broker,
                broker_epoch=self.broker_epoch,
                want_fence=False,
                want_shutdown=shutting_down,
                caught_up=True,
            )
        )

    async def shut_down(self, others_active: Callable[[], bool]) -> bool:
        """Ask for permission to stop, and return whether it came in time.

        There is nothing to wait for if no other broker is active, because none could take over.
        """
        if self.state is not LifecycleState.running or not self._settings.controlled_shutdown_enable:
            self.state = LifecycleState.stopped
            return False
        self.state = LifecycleState.shutting_down
        self._changed.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.controlled_shutdown_timeout_ms / 1000):
                while self.state is LifecycleState.shutting_down and others_active():
                    await self._change()
        allowed = self.state is LifecycleState.stopped
        self.state = LifecycleState.stopped
        return allowed

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def apply(self, decision: AnyDecision) -> None:
        """Note what a decision says about this broker."""
        match decision:
            case Answer(request_id=request_id) if request_id == self._request_id:
                self._answered(decision)
            case Answer(request="broker_heartbeat" | "controlled_shutdown" | "alter_isr") if (
                decision.error in _LOST
                and decision.broker == self._identity.broker
                # Otherwise the present registration counts, and an earlier process was refused.
                and decision.broker_epoch != self.broker_epoch
            ):
                self._lost(decision.error)
            case BrokerDecision() if decision.broker == self._identity.broker:
                self._decided(decision)
            case BrokerDecision() if self.state is LifecycleState.shutting_down:
                self._changed.set()  # this may have been the last broker that could take over

    def _answered(self, answer: Answer) -> None:
        if answer.error == "NONE" and isinstance(answer.broker_epoch, int):
            self.broker_epoch = answer.broker_epoch
            if self.state is LifecycleState.registering:
                self.state = LifecycleState.starting
            logger.info("registered", broker_epoch=self.broker_epoch)
        else:
            self._refused = answer.error
        self._changed.set()

    def _decided(self, decision: BrokerDecision) -> None:
        if decision.incarnation != self._incarnation:
            # A decision from before our own registration is about an earlier process.
            if self.broker_epoch != -1 and decision.broker_epoch > self.broker_epoch:
                self._replaced = f"broker {decision.broker} registered again with epoch {decision.broker_epoch}"
                self._changed.set()
            return
        match decision.state:
            case "active" if self.state is LifecycleState.starting:
                self.state = LifecycleState.running
                logger.info("unfenced", broker_epoch=decision.broker_epoch)
            case "fenced" if self.state is LifecycleState.running:
                self.state = LifecycleState.starting
                logger.warning("fenced", reason=decision.reason)
            case "shutdown_allowed" if self.state is LifecycleState.shutting_down:
                self.state = LifecycleState.stopped
            case "unregistered":
                self._lost("BROKER_ID_NOT_REGISTERED")
            case _:
                return
        self._changed.set()

    def _lost(self, error: str) -> None:
        """Register again, because the engine no longer knows this registration."""
        if self.state in (LifecycleState.starting, LifecycleState.running):
            logger.warning("registration lost", error=error)
            self.state = LifecycleState.registering
            self._refused = error
            self._changed.set()
