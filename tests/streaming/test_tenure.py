"""What a claim tells the rules, and what a job tells its standby at the end."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from bus.embedded import EmbeddedBus
from bus.interface import BusError
from conf.loader import load
from state.event_text import decode
from state.events import ControllerStarted
from streaming.job_errors import JobError, SupersededError
from streaming.tenure import Tenure


def test_a_claim_carries_the_tick_interval_because_the_rules_compare_changed_settings_with_it(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    tenure = Tenure(bus, load(sets=["tick.idle.interval.ms=700"]))
    tenure.begin()
    tenure.stop_ticks()
    claim = decode(bus.read(0, tenure.claim.seq)[-1].raw)
    assert isinstance(claim, ControllerStarted)
    assert claim.settings is not None
    assert claim.settings["tick.idle.interval.ms"] == "700"
    assert claim.settings["broker.session.timeout.ms"] == "9000"
    bus.close()


BUS_LOCKED = JobError("ticks cannot be published")
BUS_LOCKED.__cause__ = BusError("locked")


@pytest.mark.parametrize(
    ("error", "resigned"),
    [
        (None, 1),
        (JobError("the disk is full"), 1),
        (Py4JNetworkError("the JVM is gone"), 1),
        (SupersededError("epoch 2"), 0),
        (BusError("no answer"), 0),
        (BUS_LOCKED, 0),
    ],
)
def test_a_job_resigns_however_it_ends_unless_the_bus_has_failed(
    tmp_path: Path, error: Exception | None, resigned: int
) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    tenure = Tenure(bus, load())

    def end() -> None:
        with tenure.ending():
            tenure.begin()
            if error:
                raise error

    if error:
        with pytest.raises(type(error)):
            end()
    else:
        end()
    assert bus.resigned_epoch() == resigned
    bus.close()
