"""A process of brokers/ ends by an error with one line and one exit code, however many errors came at once."""

import pytest
from structlog.testing import capture_logs

from brokers.process.ending import EXIT_REFUSED, EXIT_UNREACHABLE, told
from bus.interface import BusError


class RefusedError(Exception):
    """Somebody refused."""


REFUSED, GONE = RefusedError("replaced"), BusError("the bus is gone")
OF_FILE = OSError(28, "no space", "log/a")


def ended(error: Exception) -> tuple[object, list[str]]:
    with (
        capture_logs() as lines,
        pytest.raises(SystemExit) as ended,
        told(refused=(RefusedError,), unreachable=(BusError, OSError)),
    ):
        raise error
    return ended.value.code, [line["why"] for line in lines]


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        (REFUSED, EXIT_REFUSED, "replaced"),
        (GONE, EXIT_UNREACHABLE, "the bus is gone"),
        (ExceptionGroup("", [ExceptionGroup("", [OF_FILE])]), EXIT_UNREACHABLE, "log/a: no space"),
        (ExceptionGroup("", [GONE, REFUSED]), EXIT_REFUSED, "replaced"),
        (ExceptionGroup("", [ExceptionGroup("", [REFUSED]), GONE, OF_FILE]), EXIT_REFUSED, "replaced"),
        (ExceptionGroup("", [GONE, OF_FILE]), EXIT_UNREACHABLE, "the bus is gone"),
    ],
)
def test_several_errors_are_one_end(error: Exception, code: int, why: str) -> None:
    assert ended(error) == (code, [why])


def test_a_defect_among_them_is_raised_with_all() -> None:
    group = ExceptionGroup("", [GONE, ZeroDivisionError()])
    with pytest.raises(ExceptionGroup) as raised, told(refused=(RefusedError,), unreachable=(BusError,)):
        raise group
    assert raised.value is group
