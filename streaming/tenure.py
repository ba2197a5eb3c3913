"""A job's hold on the controller: its claim, the ticks that show that it lives, and its resignation."""

import contextlib
from collections.abc import Iterator

import msgspec
import structlog

from bus.interface import Bus, BusError, Claim
from conf.loader import policy_text
from conf.settings import Settings, history_limits
from state.policy_fit import TICK_INTERVAL
from streaming.deadlines import Deadlines
from streaming.engine_clock import EngineClock
from streaming.job_errors import SupersededError
from streaming.layout_check import LayoutCheck
from streaming.ticker import Ticker

TICKER_STOP_TIMEOUT_S = 20.0

logger = structlog.get_logger("isrflow.job")


class Tenure:
    """The newest claim of this job, with the clock and the ticker that belong to it.

    With ``reshards`` a state in other shards or pages is laid out as the settings say, right after the claim.
    """

    def __init__(self, bus: Bus, settings: Settings, *, reshards: bool = False) -> None:
        self._bus = bus
        self._settings = settings
        self._layout = LayoutCheck(bus, settings, reshards=reshards)
        self._ticker: Ticker | None = None
        self.claim = Claim(0, 0, 0)
        self.clock = EngineClock()
        self.deadlines = Deadlines(bus)

    @property
    def controller_epoch(self) -> int:
        return self.claim.controller_epoch

    @property
    def ticker(self) -> Ticker:
        assert self._ticker is not None, "ticks begin at the claim"
        return self._ticker

    @property
    def fits(self) -> bool:
        """Whether the settings fitted the layout of the state when that was last checked."""
        return self._layout.fits

    def begin(self, after_epoch: int | None = None) -> None:
        """Claim the controller, and tick from then on. Raises ``OvertakenError`` as ``Bus.claim`` does.

        Ticks begin before the state is laid out again and before the query starts, because they show a standby that
        this job lives.
        """
        self.stop_ticks()
        if after_epoch is not None:
            # The clock starts with the wall clock, which may have drifted while this job stood by.
            self.clock = EngineClock()
        ours = policy_text(msgspec.to_builtins(self._settings.policy))
        ours[TICK_INTERVAL] = str(self._settings.tick_idle_interval_ms)
        # No rule reads these. 'isrflow history' shows them.
        ours |= {name: str(value) for name, value in history_limits(self._settings).items()}
        self.claim = self._bus.claim(self._settings.controller_name, ours, self.clock.read_ms(), after_epoch)
        busy_ms, idle_ms = self._settings.watermark_interval_ms, self._settings.tick_idle_interval_ms
        self._ticker = Ticker(self._bus, self.claim, self.clock, busy_ms, idle_ms)
        self.deadlines.begin(self.claim, self._ticker.longest_sleep)
        self._ticker.start()
        logger.info("claimed the controller", controller_epoch=self.controller_epoch, seq=self.claim.seq)
        self._layout.claimed(self.claim)

    def stop_ticks(self) -> None:
        """End the ticks, if there are any."""
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker.join(TICKER_STOP_TIMEOUT_S)
            self._ticker = None

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """End the ticks and resign after the block, also if it raises: a full disk, or a JVM that is gone.

        A bus that has failed is not asked for that, because it might keep this job waiting.
        """
        resigns = True
        try:
            yield
        except Exception as error:
            resigns = not any(isinstance(one, BusError | SupersededError) for one in (error, error.__cause__))
            raise
        finally:
            self.stop_ticks()
            if resigns:
                self._resign()

    def _resign(self) -> None:
        """Tell a standby that this job decides nothing more. A standby that is not told waits for its time-out."""
        if self.controller_epoch:
            try:
                self._bus.resign(self.controller_epoch)
            except BusError as error:
                logger.warning("a standby cannot be told that this job ends", error=str(error))
