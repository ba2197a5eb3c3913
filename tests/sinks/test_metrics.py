"""The metrics: what a scrape shows after a batch."""

import json
import threading
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bus.decided_runs import runs_in
from bus.embedded import EmbeddedBus
from sinks.known_labels import KIND_REASONS
from sinks.metric_snapshot import RECENT_BATCHES, Histogram, Recent, count_decisions
from sinks.metrics import Metrics
from sinks.resources import ResourceMeter, files_of
from state.decisions import KIND_RANK
from state.ids import NO_TIME
from state.reason import Reason
from state.shadow import Shadow
from tests.histories.recorded import all_histories
from tests.sinks.conftest import Still
from tests.sinks.sample import BODIES, NOW_MS, clusters, decision, one_by_one, sample
from tests.support.waiting import TIMEOUT_S


def shown(metrics: Metrics) -> dict[str, float]:
    text = generate_latest(metrics.registry).decode()
    samples = (one for family in text_string_to_metric_families(text) for one in family.samples)
    return {f"{name}{sorted(labels.items()) or ''}": value for name, labels, value, *_ in samples}


def test_decisions_are_counted_by_kind_and_reason() -> None:
    counts = count_decisions(runs_in(one_by_one(BODIES)))
    assert sum(counts.by_reason.values()) == len(BODIES)
    assert counts.by_reason["leader_and_isr", "TOPIC_CREATED"] == 2
    assert (counts.unclean, counts.failed_isr_updates) == (1, 1)
    assert counts.by_time_ms == {NOW_MS - 250: 9, NOW_MS - 700: 1}


def test_a_scrape_shows_the_batch() -> None:
    values = shown(sample())
    assert values["isrflow_decisions_total[('kind', 'leader_and_isr'), ('reason', 'TOPIC_CREATED')]"] == 2
    assert values["isrflow_unclean_elections_total"] == 1
    outside = [values[f"isrflow_broker_isr_shrinks_total[('broker', '{broker}')]"] for broker in (1, 2, 3)]
    assert outside == [0, 1, 0], "broker 3 is fenced"
    assert values["isrflow_isr_shrinks_total"] == values["isrflow_isr_expands_total"] == 1
    assert values["isrflow_failed_isr_updates_total"] == values["isrflow_rejected_events_total"] == 1
    assert values["isrflow_broker_sessions_expired_total"] == 1
    assert values["isrflow_brokers[('state', 'active')]"] == 2
    assert values["isrflow_brokers[('state', 'controlled_shutdown')]"] == 0
    assert values["isrflow_partitions"] == 64
    assert [values[f"isrflow_broker_backlog[('broker', '{broker}')]"] for broker in (1, 2, 3)] == [0, 4, 64]
    assert "isrflow_broker_backlog[('broker', '9')]" not in values, "it is not registered"
    assert values["isrflow_bus_lag_events"] == 12
    assert values["isrflow_last_batch_timestamp_seconds"] == NOW_MS / 1000
    assert values["isrflow_batch_phase_seconds_total[('phase', 'addBatch')]"] == 0.25
    assert values["isrflow_decision_delay_seconds_count"] == 10
    assert values["isrflow_decision_delay_seconds_bucket[('le', '0.3')]"] == 9
    assert values["isrflow_decision_delay_seconds_bucket[('le', '+Inf')]"] == 10
    assert values["isrflow_decision_delay_seconds_sum"] == pytest.approx(9 * 0.25 + 0.7)


def test_kafkas_names_show_the_same_values(still: Still) -> None:
    values = shown(sample())
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert (
        values["kafka_controller_kafkacontroller_offlinepartitionscount"] == values["isrflow_offline_partitions"] == 1
    )
    assert values["kafka_controller_kafkacontroller_lastappliedrecordlagms"] == 250
    assert values["kafka_controller_controllerstats_uncleanleaderelections_total"] == 1
    assert values["kafka_server_replicamanager_underreplicatedpartitions"] == 24
    assert values["kafka_server_replicamanager_leadercount"] == 63
    waited = "kafka_controller_controllereventmanager_eventqueuetimems"
    quantiles = [values[f"{waited}[('quantile', '{share}')]"] for share in ("0.5", "0.75", "0.95", "0.999")]
    assert quantiles == [250, 250, 700, 700]
    assert (values[f"{waited}_count"], values[f"{waited}_sum"]) == (10, pytest.approx(9 * 250 + 700))


def test_the_age_of_what_a_shadow_observed_grows_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def ages(shadow: Shadow | None) -> list[float]:
        """Return the ages right after an operation of ``NOW_MS - 250`` was decided, and two minutes later."""
        metrics = Metrics()
        observed = [replace(cluster, shadow=shadow) for cluster in clusters()]
        metrics.committed(decisions=[], clusters=observed, through=1, last_seq=1, now_ms=NOW_MS, engine_ms=NOW_MS)
        found = []
        for clock_ms in (NOW_MS, NOW_MS + 120_000):
            monkeypatch.setattr("sinks.metrics.now_ms", lambda clock_ms=clock_ms: clock_ms)
            found.append(shown(metrics)["isrflow_shadow_age_seconds"])
        return found

    live = Shadow("its-cluster", 90, 91, heard_ms=NOW_MS - 50)
    assert ages(live) == [0.25, 120.25]
    assert ages(replace(live, heard_ms=NOW_MS - 400)) == [0.4, 120.4], "the cluster's clock is ahead"
    assert ages(replace(live, heard_ms=NO_TIME)) == [0, 0], "a recorded log does not grow old"
    assert ages(None) == [0, 0], "a cluster that is led"


def test_recent_durations_are_bounded() -> None:
    recent = Recent()
    for value in range(RECENT_BATCHES + 10):
        recent = recent.added({float(value): 1})
    assert (len(recent.batches), recent.count) == (RECENT_BATCHES, RECENT_BATCHES + 10)
    assert recent.quantiles([0.0, 1.0]) == {0.0: 10.0, 1.0: RECENT_BATCHES + 9.0}
    assert Recent().added({}).quantiles([0.5]) == {0.5: 0.0}


def test_kafkas_names_can_be_left_out() -> None:
    assert [name for name in shown(sample(kafka_names=False)) if not name.startswith("isrflow_")] == []


def test_counts_add_up_and_state_is_replaced() -> None:
    metrics = sample()
    metrics.committed(
        decisions=one_by_one(BODIES),
        clusters=clusters()[:1],
        through=4_012,
        last_seq=4_012,
        now_ms=NOW_MS + 500,
        engine_ms=NOW_MS + 500,
    )
    metrics.batch_ended(duration_ms=100, phases_ms={"addBatch": 50}, events=12)
    values = shown(metrics)
    assert values["isrflow_unclean_elections_total"] == 2
    assert values["isrflow_partitions"] == 60
    assert values["isrflow_bus_lag_events"] == 0
    assert (values["isrflow_batches_total"], values["isrflow_events_total"]) == (2, 4_012)
    assert values["isrflow_batch_phase_seconds_total[('phase', 'addBatch')]"] == 0.3
    assert values["isrflow_batch_phase_seconds_total[('phase', 'walCommit')]"] == 0.03


def test_the_lag_grows_while_no_batch_ends_and_is_never_negative() -> None:
    metrics = sample()
    metrics.bus_at(5_000)
    assert shown(metrics)["isrflow_bus_lag_events"] == 1_000
    metrics.bus_at(1)
    assert shown(metrics)["isrflow_bus_lag_events"] == 0


def test_what_earlier_jobs_decided_is_no_lag() -> None:
    metrics = Metrics()
    metrics.took_over(3, 1_000_000)
    metrics.bus_at(1_000_012)
    values = shown(metrics)
    assert (values["isrflow_bus_lag_events"], values["isrflow_decided_seq"]) == (12, 1_000_000)


def test_a_fenced_job_is_not_active() -> None:
    metrics = sample()
    metrics.gave_up()
    values = shown(metrics)
    assert values["isrflow_controller_active"] == 0
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 0
    assert values["isrflow_controller_epoch"] == 3


def test_all_metrics_are_there_before_the_first_batch() -> None:
    values = shown(Metrics())
    assert values["isrflow_partitions"] == values["isrflow_batches_total"] == 0


def test_a_bucket_includes_its_bound() -> None:
    histogram = Histogram().added({0.05: 1, 0.050001: 2, 31.0: 1})
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[-1], sum(histogram.counts)) == (1, 2, 1, 4)


def test_concurrent_updates_are_not_lost() -> None:
    metrics = Metrics()

    def end_batches() -> None:
        for _ in range(500):
            metrics.batch_ended(duration_ms=1, phases_ms={"addBatch": 1}, events=1)

    threads = [threading.Thread(target=end_batches) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=TIMEOUT_S)
    assert metrics.snapshot.batches == metrics.snapshot.events == 2_000


def test_known_label_values_are_there_from_the_start() -> None:
    values = shown(Metrics())
    assert values["isrflow_decisions_total[('kind', 'leader_and_isr'), ('reason', 'UNCLEAN_ELECTION')]"] == 0
    assert values["isrflow_batch_phase_seconds_total[('phase', 'addBatch')]"] == 0
    assert values["isrflow_brokers[('state', 'fenced')]"] == values["isrflow_rule_failures_total"] == 0


def test_every_recorded_kind_of_decision_and_reason_is_known() -> None:
    made = {(one["kind"], one["reason"]) for history in all_histories() for one in map(json.loads, history.decisions)}
    assert made - set(KIND_REASONS) == set()
    assert {reason for _, reason in KIND_REASONS} == set(Reason)
    assert {kind for kind, _ in KIND_REASONS} == set(KIND_RANK)


def test_an_engine_that_hangs_is_no_active_controller(still: Still) -> None:
    metrics = sample()
    still.now_ms += 10_000
    assert shown(metrics)["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    still.now_ms += 20_000
    values = shown(metrics)
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 0
    assert values["kafka_controller_kafkacontroller_lastappliedrecordlagms"] == 30_250
    assert values["isrflow_controller_active"] == 1, "nobody else has claimed, and IsrflowStuck asks for it"


def test_failures_have_counters_of_their_own() -> None:
    metrics = sample()
    bodies = [decision("rejected", reason) for reason in ("RULES_FAILED", "INVARIANT_BROKEN", "INVARIANT_BROKEN")]
    metrics.committed(decisions=one_by_one(bodies), clusters=(), through=1, last_seq=1, now_ms=NOW_MS, engine_ms=NOW_MS)
    values = shown(metrics)
    names = ("rule_failures", "broken_invariants", "malformed_events", "rejected_events")
    assert [values[f"isrflow_{name}_total"] for name in names] == [1, 2, 1, 4]


def test_only_partitions_at_risk_have_series_of_their_own() -> None:
    values = shown(sample())
    place = "[('partition', '7'), ('topic', 'orders')]"
    assert (
        values["isrflow_partition_at_risk[('partition', '7'), ('problem', 'under_min_isr'), ('topic', 'orders')]"] == 1
    )
    found = {name: value for name, value in values.items() if name.startswith("kafka_cluster_partition_")}
    counts = {"underminisr": 1, "atminisr": 0, "insyncreplicascount": 1, "replicascount": 3}
    assert found == {f"kafka_cluster_partition_{name}{place}": value for name, value in counts.items()}


def test_memory_and_the_bus_are_measured(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    try:
        values = shown(Metrics(meter=ResourceMeter(files_of(bus))))
        assert values["isrflow_bus_bytes"] >= (tmp_path / "bus.db").stat().st_size > 0
        assert values["isrflow_process_memory_bytes[('process', 'engine')]"] > 1_000_000
        # Other tests of this process may have started a JVM, or may not have waited for one that ended.
        children = psutil.Process().children(recursive=True)
        has_jvm = any(child.name() == "java" and child.status() != psutil.STATUS_ZOMBIE for child in children)
        assert (values["isrflow_process_memory_bytes[('process', 'jvm')]"] > 0) == has_jvm
    finally:
        bus.close()
    assert "isrflow_bus_bytes" not in shown(Metrics(meter=ResourceMeter()))
