"""Settings, and how they are laid over each other."""

import msgspec
import pytest

from state.policy import (
    NAMES,
    Policy,
    complaint_about,
    for_topic,
    laid_over,
    misspelt,
    policy_of,
)


def test_names_are_kafkas() -> None:
    assert {"broker.session.timeout.ms", "unclean.leader.election.enable", "min.insync.replicas"} <= NAMES


@pytest.mark.parametrize("value", ["1", " 1", "1 ", "\t1\r\n", "+1", "01", "+0001"])
def test_a_number_is_read_as_kafka_reads_it(value: str) -> None:
    assert complaint_about("min.insync.replicas", value) is None
    assert for_topic(Policy(min_insync_replicas=2), {"min.insync.replicas": value}).min_insync_replicas == 1


@pytest.mark.parametrize("value", ["true", " TRUE", "True\n", "tRUE"])
def test_a_switch_is_read_as_kafka_reads_it(value: str) -> None:
    name = "unclean.leader.election.enable"
    assert complaint_about(name, value) is None
    assert for_topic(Policy(), {name: value}).unclean_leader_election_enable


@pytest.mark.parametrize(
    ("key", "value"),
    [("min.insync.replicas", value) for value in ("0", "-0", "-1", "1000001", "9" * 5_000, "1" + "0" * 20)]
    + [("min.insync.replicas", value) for value in ("", " ", "+", "+-1", "+ 1", "1.0", "1e0", "0x1", "1_0", "true")]
    + [("min.insync.replicas", value) for value in ("\u0661", "\uff11", "\u00a01", "1\u2003")]
    + [("unclean.leader.election.enable", value) for value in ("", "1", "yes", "t", "\u00a0true")],
)
def test_what_kafka_does_not_read_is_refused_by_name(key: str, value: str) -> None:
    expected = "true or false" if key.startswith("unclean") else "a whole number from 1 to 1000000"
    assert complaint_about(key, value) == f"{key} is {value!r:.40}: expected {expected}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min.insync.replicas", "1"),
        ("min.insync.replicas", "1000000"),
        ("leader.imbalance.per.broker.percentage", "0"),
        ("leader.imbalance.per.broker.percentage", "100"),
        ("broker.connection.lost.grace.ms", "-1"),
    ],
)
def test_the_least_and_the_greatest_value_are_taken(key: str, value: str) -> None:
    assert complaint_about(key, value) is None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("min.insync.replica", "min.insync.replicas"),
        ("num_partitions", "num.partitions"),
        ("min.insync.replicas", None),
        ("controller.quorum.election.timeout.ms", None),
        ("retention.ms", None),
    ],
)
def test_a_name_that_almost_is_one_of_the_settings_is_misspelt(key: str, meant: str | None) -> None:
    assert misspelt(key, NAMES) == meant


def test_a_setting_that_no_rule_reads_is_not_judged() -> None:
    assert complaint_about("retention.ms", "whatever") is None


def test_a_complaint_names_the_key() -> None:
    assert "min.insync.replicas" in (complaint_about("min.insync.replicas", "0") or "")


def test_layers_override_only_what_they_name() -> None:
    policy = laid_over(Policy(num_partitions=7), {"min.insync.replicas": "2", "retention.ms": "1"})
    assert (policy.num_partitions, policy.min_insync_replicas) == (7, 2)


def test_an_invalid_value_does_not_affect_the_valid_ones() -> None:
    for two in ("2", " +2"):
        policy = laid_over(Policy(), {"num.partitions": "many", "min.insync.replicas": two})
        assert (policy.num_partitions, policy.min_insync_replicas) == (1, 2)


def test_an_unknown_setting_is_refused_in_a_base() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"no\.such"):
        policy_of({"no.such": 1})
