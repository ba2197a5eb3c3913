"""A failure that lasts is logged when it begins, when its reason changes, and once a minute."""

from structlog.testing import capture_logs

from brokers.gateways.zk.failure_log import SAY_AGAIN_S, FailureLog


def test_a_failure_that_lasts_is_logged_once_a_minute() -> None:
    failures = FailureLog("cannot lead")
    with capture_logs() as logged:
        for half_second in range(240):
            failures.failed("ZooKeeper is out of reach", 1_000 + half_second / 2)
    assert [(line["event"], line["why"], line["failures"]) for line in logged] == [
        ("cannot lead", "ZooKeeper is out of reach", 1),
        ("cannot lead", "ZooKeeper is out of reach", 1 + int(2 * SAY_AGAIN_S)),
    ]


def test_another_reason_is_logged_at_once() -> None:
    failures = FailureLog("cannot lead")
    with capture_logs() as logged:
        for why in ("one", "one", "other", "one"):
            failures.failed(why, 1_000)
    assert [line["why"] for line in logged] == ["one", "other", "one"]


def test_a_failure_after_a_success_is_logged_at_once() -> None:
    failures = FailureLog("cannot lead")
    with capture_logs() as logged:
        failures.failed("one", 1_000)
        failures.succeeded()
        failures.failed("one", 1_001)
    assert [line["failures"] for line in logged] == [1, 1]


def test_a_failure_early_in_the_life_of_the_machine_is_logged() -> None:
    with capture_logs() as logged:
        FailureLog("cannot lead").failed("one", 0.5)
    assert len(logged) == 1
