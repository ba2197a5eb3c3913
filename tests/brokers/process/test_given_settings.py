"""Settings of mock brokers on their command line: an error names the setting and what was expected."""

import click
import pytest
from click.testing import CliRunner

from brokers.mock.__main__ import main as mock_broker
from brokers.mock.settings import settings_of
from brokers.process.given_settings import parsed


def test_settings_of_the_engine_alone_are_passed_over() -> None:
    assert parsed(["leader.imbalance.check.interval.seconds=7"], settings_of) == settings_of({})
    with pytest.raises(click.BadParameter, match="unknown setting 'nothing'"):
        parsed(["nothing=7"], settings_of)


@pytest.mark.parametrize("bus", ["kafak://host:1", "kafka://host"])
def test_a_url_of_no_bus_is_wrong_use_and_not_waited_for(bus: str) -> None:
    done = CliRunner().invoke(mock_broker, ["--bus", bus])
    assert (done.exit_code, f"Invalid value for '--bus': '{bus}' is not a bus" in done.stderr) == (2, True)
