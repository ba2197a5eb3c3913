"""The differences between histories, drawn from the seed before anything else."""

import random
from typing import NamedTuple

from brokers.mock.settings import Settings
from state.features import ELIGIBLE_VERSION
from state.policy import RECOVERY_STRATEGY, RECOVERY_TIMEOUT


class Scenery(NamedTuple):
    """The size of the cluster, its settings, and the kinds of faults that may happen.

    ``lasts_s`` is how long faults continue. With ``unclean`` a topic may elect unclean leaders, and an admin asks
    for it. With ``comes_and_goes`` topics are created and deleted. With ``balanced`` leaders go back to preferred
    replicas by themselves. With ``duplicates`` other processes register under brokers' ids. With ``clocks_lie``
    hosts' clocks are set and drift, and ticks and claims are forged. With ``eligible``, which is never drawn,
    partitions keep eligible leader replicas, and ``recovery`` is the strategy of elections by logs.
    """

    brokers: tuple[int, ...]
    partitions: int
    min_insync: int
    shards: int
    lasts_s: float
    unclean: bool
    balanced: bool
    comes_and_goes: bool
    configured: bool
    disks_fail: bool
    idempotent: bool
    duplicates: bool
    clocks_lie: bool
    eligible: bool = False
    recovery: str = ""

    @property
    def engine_settings(self) -> dict[str, str]:
        """The settings under which engines start."""
        return {
            "broker.session.timeout.ms": "1000",
            "auto.leader.rebalance.enable": str(self.balanced).lower(),
            "leader.imbalance.per.broker.percentage": "0",
            "leader.imbalance.check.interval.seconds": "1",
        } | (self._of_eligible if self.eligible else {})

    @property
    def _of_eligible(self) -> dict[str, str]:
        return {ELIGIBLE_VERSION: "1", RECOVERY_STRATEGY: self.recovery, RECOVERY_TIMEOUT: "2000"}

    @property
    def broker_settings(self) -> Settings:
        """The brokers' settings: realistic, with short times."""
        return Settings(
            broker_heartbeat_interval_ms=250,
            controlled_shutdown_timeout_ms=1_500,
            watermark_interval_ms=50,
            decisions_poll_interval_ms=50,
            replica_lag_time_max_ms=600,
            replica_fetch_wait_max_ms=200,
            replica_fetch_max_bytes=300,
            replica_fetch_backoff_ms=50,
            replica_socket_timeout_ms=800,
            replica_high_watermark_checkpoint_interval_ms=2_000,
            alter_isr_timeout_ms=ALTER_ISR_TIMEOUT_MS,
            alter_isr_backoff_ms=100,
            log_segment_bytes=600,
            min_insync_replicas=self.min_insync,
        )


ALTER_ISR_TIMEOUT_MS = 800


def draw(rng: random.Random) -> Scenery:
    """Draw a scenery. Most histories lack each kind of trouble, because frequent trouble hides rare bugs."""
    return Scenery(
        brokers=tuple(range(1, 1 + rng.choice((3, 3, 4, 5)))),
        partitions=rng.choice((1, 1, 2)),
        min_insync=rng.choice((1, 2, 2)),
        shards=rng.choice((1, 1, 3)),
        lasts_s=rng.uniform(2.0, 6.0),
        unclean=rng.random() < 0.15,
        balanced=rng.random() < 0.2,
        comes_and_goes=rng.random() < 0.25,
        configured=rng.random() < 0.25,
        disks_fail=rng.random() < 0.2,
        idempotent=rng.random() < 0.4,
        duplicates=rng.random() < 0.2,
        clocks_lie=rng.random() < 0.3,
    )
