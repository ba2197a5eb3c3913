"""Random cluster ids."""

from brokers.launch.kafka.cluster import random_cluster_id


def test_no_cluster_id_looks_like_an_option() -> None:
    # One random id in 64 would, so a thousand without one are no accident.
    drawn = {random_cluster_id() for _ in range(1_000)}
    assert len(drawn) == 1_000
    assert {len(one) for one in drawn} == {22}
    assert not [one for one in drawn if one.startswith("-")]
