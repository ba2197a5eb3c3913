"""All settings: the rules' policy, and the engine's own."""

import os
import socket
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from conf.spark_settings import SERVER
from conf.super_users import AuthorizerClass, SuperUsers
from isrflow.bus_url import KINDS
from isrflow.contract import SQLITE
from state.policy import Count, Policy

DEFAULT_BUS = "sqlite:data/bus.db"
# The settings that name a file or directory by its path. The checkpoint may also be a URI.
PATHS = ("checkpoint.dir", "kafka.client.config", "metrics.ssl.keystore.location", "metrics.token.file")
Shards = Annotated[int, Meta(ge=1, le=1_024)]
Port = Annotated[int, Meta(ge=-1, le=65_535)]
# At most 5 s, because commands that check whether an engine decides wait only some seconds for a tick.
TickInterval = Annotated[int, Meta(ge=1, le=5_000)]
Replicas = Annotated[int, Meta(ge=0, le=32_767)]
Wait = Annotated[int, Meta(ge=1, le=86_400_000)]
# At least 1,000, because followers may be behind and must read decisions before retention removes them.
Retained = Annotated[int, Meta(ge=1_000)]
# -1 is no limit.
Span = Annotated[int, Meta(ge=-1, le=2**53)]
BatchBytes = Annotated[int, Meta(ge=1, le=2**30)]
Text = Annotated[str, Meta(min_length=1, max_length=1_024)]
MaybeText = Annotated[str, Meta(max_length=1_024)]
# The claim contains it, and the rules reject an event with a longer text.
ControllerName = Annotated[str, Meta(max_length=1_024, description="a name of at most 1024 characters")]
# The checkpoint is moved aside to a name beside its own, so it cannot be the root of a file system or a bucket.
CheckpointDir = Annotated[
    str,
    Meta(
        max_length=1_024,
        pattern=r"^(?![A-Za-z][A-Za-z0-9+.-]+:(?=/)(//[^/]*)?/*\Z)",
        description="a path, or the URI of a directory below the root, such as hdfs://host/isrflow or s3a://bucket/isrflow",
    ),
]
BusUrl = Annotated[
    str,
    Meta(
        pattern=rf"^(sqlite:.|kafka://{SERVER}(,{SERVER})*(/[A-Za-z0-9._-]{{1,200}})?\Z)",
        description=" or ".join(kind.form for kind in KINDS),
    ),
]
Memory = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mg]\Z", description="a size such as 512m or 2g")]


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename=lambda n: n.replace("_", ".")):
    """Every setting. A field's outward name has dots for underscores, and follows Kafka or Spark.

    ``conf/reference.toml`` explains each. Relative paths are relative to the current directory.
    """

    policy: Policy = Policy()
    bus: BusUrl = DEFAULT_BUS
    sqlite_lock_timeout_ms: Wait = 600_000
    kafka_topics_replication_factor: Replicas = 0
    kafka_client_config: MaybeText = ""
    checkpoint_dir: CheckpointDir = ""
    controller_id: ControllerName = ""
    cluster_name: ControllerName = ""
    shards: Shards = 16
    pages: Count = 64
    shuffle_partitions: Shards = 2
    max_events_per_batch: Count = 200_000
    max_bytes_per_batch: BatchBytes = 48 * 1024 * 1024
    watermark_interval_ms: TickInterval = 100
    tick_idle_interval_ms: TickInterval = 500
    history_ms: Span = 86_400_000
    history_events: Retained = 1_000_000
    history_snapshot_interval_ms: Wait = 600_000
    retention_ms: Span = 2_592_000_000
    retention_events: Retained = 1_000_000
    takeover_timeout_ms: Wait = 15_000
    controller_standby_timeout_ms: Wait = 3_000
    super_users: SuperUsers = ""
    authorizer_class_name: AuthorizerClass = ""
    allow_everyone_if_no_acl_found: bool = False
    driver_memory: Memory = "1g"
    driver_java_options: str = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    # Spark's own settings by their whole names; spark.master is one of them.
    spark: dict[str, str] = {}
    metrics_host: Text = "127.0.0.1"
    metrics_port: Port = 9_464
    metrics_ssl_keystore_location: MaybeText = ""
    metrics_token_file: MaybeText = ""
    metrics_kafka_names: bool = field(default=True, name="metrics.kafka_names")
    log_format: Literal["auto", "json", "console"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def bus_name(self) -> str:
        """The name of the bus in messages: its path, or its URL."""
        return self.bus.removeprefix(SQLITE)

    @property
    def controller_name(self) -> str:
        """This job's name: ``controller.id``, or host and process id if that is empty."""
        return self.controller_id or f"{socket.gethostname()}-{os.getpid()}"


def history_limits(settings: Settings) -> dict[str, int]:
    """Return the settings that limit how far back the past reaches."""
    return {
        "history.ms": settings.history_ms,
        "history.events": settings.history_events,
        "history.snapshot.interval.ms": settings.history_snapshot_interval_ms,
        "retention.ms": settings.retention_ms,
        "retention.events": settings.retention_events,
    }
