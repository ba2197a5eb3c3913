"""What `isrflow run` runs: one job on the bus that the settings name."""

from bus.open_bus import open_bus
from conf.layers import SettingsError
from conf.security.exposure import Protection, protection_of
from conf.settings import Settings
from sinks.metrics import Metrics
from sinks.resources import ResourceMeter, files_of
from streaming.job import Job
from streaming.stopping import StopSignals


def run(
    settings: Settings, signals: StopSignals | None = None, *, standby: bool = False, reshards: bool = False
) -> None:
    """Run the engine until SIGTERM or SIGINT. With ``standby``, wait until no other engine decides.

    With ``reshards``, a state in other shards or pages is laid out as the settings say when the engine takes over.

    Raises ``StoppedError`` if a signal came before the engine decided anything, ``SupersededError`` if another job
    claimed a later controller epoch, ``JobError`` if Spark or the query failed, ``BusError`` if the bus cannot be used,
    ``MetricsError`` if the metrics port cannot be opened, and ``SettingsError`` if settings do not fit the state or
    Spark, or would open the metrics port to others.
    """
    protection = _protection(settings)
    bus = open_bus(
        settings.bus,
        lock_timeout_s=settings.sqlite_lock_timeout_ms / 1_000,
        replication_factor=settings.kafka_topics_replication_factor,
    )
    metrics = Metrics(
        kafka_names=settings.metrics_kafka_names,
        controller_id=settings.controller_name,
        meter=ResourceMeter(files_of(bus)),
    )
    try:
        Job(bus, settings, metrics, protection, signals, standby=standby, reshards=reshards).run()
    finally:
        bus.close()


def _protection(settings: Settings) -> Protection:
    try:
        return protection_of(settings)
    except ValueError as error:
        raise SettingsError(str(error)) from error
