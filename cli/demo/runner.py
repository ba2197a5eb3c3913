"""Run the demo: make a directory and a cluster, tell the story, print the summary, and clean up."""

import contextlib
import logging
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

from brokers.launch.kafka.tools import ToolError
from brokers.launch.service import ServiceError
from cli.closed_output import check_open
from cli.cluster.up import fetch_missing
from cli.demo import screen
from cli.demo.cluster import HOST, DemoError
from cli.demo.kafka_cluster import KafkaDemoCluster, jar_sets
from cli.demo.kafka_story import KafkaStory, ZookeeperStory
from cli.demo.mock_cluster import MockDemoCluster
from cli.demo.story import TOPIC, AnyCluster, MockStory, Result, Story
from cli.demo.watch import Watch
from cli.errors import Refused, Unreachable

CHECK_INTERVAL_S = 0.5
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_demo(*, kafka: bool, zookeeper: bool, keep: bool, plain: bool) -> None:
    """Run the demo. Raises ``Refused`` if a record was lost, ``Unreachable`` if the demo could not finish."""
    check_open()
    on_terminal = sys.stdout.isatty()
    if kafka:
        for set_name in jar_sets(zookeeper=zookeeper):
            fetch_missing(set_name)
    directory = Path(tempfile.mkdtemp(prefix="isrflow-demo-"))
    _log_clients_to(directory / "client.log")
    wanted = False
    cluster, story = _kafka(directory, zookeeper) if kafka else _mock(directory)
    with _signals_as_ctrl_c():
        try:
            # In here, because the reader of the output may leave at any line.
            click.echo(f"Working in {directory}; it is deleted if the demo succeeds.")
            click.echo(story.opening)
            click.echo(f"Watch it live at http://{HOST}:{cluster.metrics_port}/")
            show = screen.plain if plain or not on_terminal else screen.live
            with show(story, story.watch):
                result = story.tell()
            _summarise(story, result)
            if not result.account.is_clean:
                wanted = True
                raise Refused(f"acknowledged records were lost, duplicated or out of order.\n{_logs_of(cluster)}")
            if keep:
                _keep_until_ctrl_c(cluster)
        except (DemoError, ServiceError, ToolError) as error:
            wanted = True
            raise Unreachable(f"{error}\n{_logs_of(cluster)}") from error
        finally:
            _stop(story.watch, cluster)
            if not wanted:
                shutil.rmtree(directory, ignore_errors=True)


def _mock(directory: Path) -> tuple[AnyCluster, Story]:
    cluster = MockDemoCluster(directory)
    return cluster, MockStory(cluster, Watch(cluster.bus, TOPIC, cluster.check, cluster.moved))


def _kafka(directory: Path, zookeeper: bool) -> tuple[AnyCluster, Story]:
    cluster = KafkaDemoCluster(directory, zookeeper=zookeeper)
    story = ZookeeperStory if zookeeper else KafkaStory
    return cluster, story(cluster, Watch(cluster.bus, TOPIC, cluster.check, cluster.moved))


def _keep_until_ctrl_c(cluster: AnyCluster) -> None:
    """Keep the cluster until Ctrl-C, or until one of its processes ends."""
    _print_commands_to_try(cluster)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            cluster.check()
            time.sleep(CHECK_INTERVAL_S)


def _stop(watch: Watch, cluster: AnyCluster) -> None:
    """Stop all processes."""
    _ignore_signals()
    try:
        watch.stop()
        cluster.stop()
    finally:
        cluster.bus.close()


def _logs_of(cluster: AnyCluster) -> str:
    return f"The logs are kept:\n{cluster.seen()}"


@contextlib.contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that no process is left running.

    Only the first of these signals counts. Another one in the middle of the clean-up would leave some running.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        _ignore_signals()
        raise KeyboardInterrupt

    # What this process was started to ignore stays so: nohup does that with SIGHUP, a shell's background with SIGINT.
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _log_clients_to(path: Path) -> None:
    """Send the Kafka clients' logs to a file, because failed connections to a killed broker are expected."""
    logger = logging.getLogger("kafka")
    logger.addHandler(logging.FileHandler(path))
    logger.propagate = False


def _summarise(story: Story, result: Result) -> None:
    made = result.account
    for name, value in (
        ("from the kill to the new leader", f"{result.to_new_leader_s:.1f} s, {story.detection}"),
        ("from the kill to the first acknowledged record", f"{result.to_first_ack_s:.1f} s"),
        ("a write with acks=all, median", f"{result.median_ack_s:.2f} s"),
        *result.more,
        ("records acknowledged", str(made.acknowledged)),
        ("records read back", str(made.read_back)),
        ("lost", str(made.lost)),
        ("duplicates", str(made.duplicates)),
        ("out of order", str(made.out_of_order)),
    ):
        click.echo(f"{name + ':':<60} {value}")


def _print_commands_to_try(cluster: AnyCluster) -> None:
    found = shutil.which("isrflow")
    isrflow = "isrflow" if found else str(Path(sys.executable).with_name("isrflow"))
    create = '{"kind":"create_topic","topic":"mine","partitions":2,"replication_factor":3}'
    brokers = "  ".join(f"{service.name} {service.pid}" for service in cluster.services)
    click.echo(f"""
The cluster runs until Ctrl-C. Try these in another terminal:
  export ISRFLOW_BUS={cluster.bus.path}
  {isrflow} describe
  {isrflow} decisions --follow --kind leader_and_isr --kind broker
  echo '{create}' | {isrflow} publish - --wait
  curl http://{HOST}:{cluster.metrics_port}/metrics
The page with brokers, partitions and decisions is at http://{HOST}:{cluster.metrics_port}/
Kafka clients connect to {",".join(cluster.bootstrap_servers())}; process ids: {brokers}""")
