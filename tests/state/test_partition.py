"""The properties of a partition."""

from itertools import product

from state.partition import Partition, PartitionState, ReplicaState

EPOCHS = (-1, 0, 1)


def test_the_backlog_lists_the_replicas_that_are_behind() -> None:
    told = [(), *product(EPOCHS, repeat=2)]
    for requested, completed in product(told, repeat=2):
        partition = Partition(
            0,
            PartitionState.OnlinePartition,
            (7, 8),
            (ReplicaState.OnlineReplica,) * 2,
            requested_epochs=requested,
            completed_epochs=completed,
        )
        asked, done = requested or (-1, -1), completed or (-1, -1)
        expected = [replica for place, replica in enumerate((7, 8)) if asked[place] > done[place]]
        assert partition.backlog == expected
        assert [partition.replicas[place] for place in (0, 1) if partition.is_behind(place)] == expected
