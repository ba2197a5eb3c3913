"""Put the demo on: a directory, the cluster, the story, the summary, and everything away again."""

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

from isrflow.cli.demo import screen
from isrflow.cli.demo.cluster import HOST, DemoCluster
from isrflow.cli.demo.processes import DemoError
from isrflow.cli.demo.story import TOPIC, Result, Story
from isrflow.cli.demo.watch import Watch
from isrflow.cli.errors import Refused, Unreachable

CHECK_INTERVAL_S = 0.5


def perform(*, keep: bool, plain: bool) -> None:
    """Run the demo; raises ``Refused`` when a record was lost, ``Unreachable`` when it did not come to its end."""
    directory = Path(tempfile.mkdtemp(prefix="isrflow-demo-"))
    _log_clients_to(directory / "client.log")
    click.echo(f"Working in {directory}; the broker session is 3 s here, instead of Kafka's 9 s.")
    click.echo("Spark takes 10 to 30 s to start.")
    cluster = DemoCluster(directory)
    watch = Watch(cluster.bus, TOPIC, cluster.check)
    wanted = False
    try:
        with _ended_like_ctrl_c():
            story = Story(cluster, watch)
            show = screen.plain if plain or not sys.stdout.isatty() else screen.live
            with show(story, watch):
                result = story.tell()
            _summarise(result)
            if not result.account.is_clean:
                wanted = True
                raise Refused(f"acknowledged records were lost, doubled or out of order.\n{_logs_of(cluster)}")
            if keep:
                _stay(cluster)
    except DemoError as error:
        wanted = True
        raise Unreachable(f"{error}\n{_logs_of(cluster)}") from error
    finally:
        watch.stop()
        _stop(cluster)
        cluster.bus.close()
        if not wanted:
            shutil.rmtree(directory, ignore_errors=True)


def _stay(cluster: DemoCluster) -> None:
    """Keep the cluster until Ctrl-C, or until one of its processes ends."""
    _say_how_to_play(cluster)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            cluster.check()
            time.sleep(CHECK_INTERVAL_S)


def _stop(cluster: DemoCluster) -> None:
    """Stop all processes; a second Ctrl-C must not leave some of them behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        cluster.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _logs_of(cluster: DemoCluster) -> str:
    return "\n".join(["The logs are kept:", *(f"  {process.name}: {process.log}" for process in cluster.processes)])


@contextlib.contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that no process is left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log_clients_to(path: Path) -> None:
    """Keep what the Kafka clients log out of the story: connections to a killed broker fail, as they must."""
    logger = logging.getLogger("kafka")
    logger.addHandler(logging.FileHandler(path))
    logger.propagate = False


def _summarise(result: Result) -> None:
    made = result.account
    for name, value in (
        ("from the kill to the new leader", f"{result.to_new_leader_s:.1f} s, of which 3.0 s are the broker session"),
        ("from the kill to the first acknowledged record", f"{result.to_first_ack_s:.1f} s"),
        ("a write with acks=all, median", f"{result.median_ack_s:.1f} s"),
        ("records acknowledged", str(made.acknowledged)),
        ("records read back", str(made.read_back)),
        ("lost", str(made.lost)),
        ("duplicates", str(made.duplicates)),
        ("out of order", str(made.out_of_order)),
    ):
        click.echo(f"{name + ':':<48} {value}")


def _say_how_to_play(cluster: DemoCluster) -> None:
    found = shutil.which("isrflow")
    isrflow = "isrflow" if found else str(Path(sys.executable).with_name("isrflow"))
    create = '{"kind":"create_topic","topic":"mine","partitions":2,"replication_factor":3}'
    brokers = "  ".join(f"{process.name} {process.pid}" for process in cluster.processes)
    click.echo(f"""
The cluster goes on until Ctrl-C. To play with it, in another terminal:
  export ISRFLOW_BUS={cluster.bus.path}
  {isrflow} describe
  {isrflow} decisions --follow --kind leader_and_isr --kind broker
  echo '{create}' | {isrflow} publish - --wait
  curl http://{HOST}:{cluster.metrics_port}/metrics
Kafka clients find it at {",".join(cluster.bootstrap_servers())}; process ids: {brokers}""")
