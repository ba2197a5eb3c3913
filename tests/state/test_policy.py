"""Settings, and how they are laid over each other."""

import msgspec
import pytest

from state.policy import NAMES, Policy, complaint_about, laid_over, policy_of


def test_names_are_kafkas() -> None:
    assert {"broker.session.timeout.ms", "unclean.leader.election.enable", "min.insync.replicas"} <= NAMES


@pytest.mark.parametrize(
    ("key", "value", "is_good"),
    [
        ("min.insync.replicas", "1", True),
        ("min.insync.replicas", "0", False),
        ("min.insync.replicas", "1.5", False),
        ("min.insync.replicas", "", False),
        ("unclean.leader.election.enable", "true", True),
        ("unclean.leader.election.enable", "FALSE", True),
        ("unclean.leader.election.enable", "yes", False),
        ("unclean.leader.election.enable", "1", False),
        ("min.insync.replicas", "1.0", False),
        ("min.insync.replicas", "1e0", False),
        ("min.insync.replicas", "\u0661", False),
        ("min.insync.replicas", "1\n", False),
        ("retention.ms", "whatever", True),
    ],
)
def test_a_value_is_judged_by_its_setting(key: str, value: str, is_good: bool) -> None:
    assert (complaint_about(key, value) is None) == is_good


def test_a_complaint_names_the_key() -> None:
    assert "min.insync.replicas" in (complaint_about("min.insync.replicas", "0") or "")


def test_layers_override_only_what_they_name() -> None:
    policy = laid_over(Policy(num_partitions=7), {"min.insync.replicas": "2", "retention.ms": "1"})
    assert (policy.num_partitions, policy.min_insync_replicas) == (7, 2)


def test_an_invalid_value_does_not_affect_the_valid_ones() -> None:
    policy = laid_over(Policy(), {"num.partitions": "many", "min.insync.replicas": "2"})
    assert (policy.num_partitions, policy.min_insync_replicas) == (1, 2)


def test_an_unknown_setting_is_refused_in_a_base() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"no\.such"):
        policy_of({"no.such": 1})
