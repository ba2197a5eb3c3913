"""What a claim tells the rules."""

from pathlib import Path

from bus.embedded import EmbeddedBus
from conf.loader import load
from state.event_text import decode
from state.events import ControllerStarted
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
