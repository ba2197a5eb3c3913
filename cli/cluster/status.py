"""Show a cluster's processes, and the brokers' states as the engine decided them."""

import contextlib
from pathlib import Path
from typing import Any

import click
import msgspec

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.node import KafkaNode
from brokers.launch.service import Service
from cli.cluster.engine import decides
from cli.cluster.folder import dir_option, open_cluster
from cli.cluster.led_cluster import LedCluster
from cli.committed import blocked
from cli.errors import Unreachable
from cli.output import format_option
from state.cluster import Cluster

Row = dict[str, Any]


@click.command("status")
@format_option
@dir_option
def command(form: str, folder: Path) -> None:
    """Show a cluster's processes.

    For each process it shows whether it runs, how the engine sees it, and where its log is. The exit code is
    3 if a process does not run, or if no engine decides.

    \b
    Examples:
      isrflow cluster status
      isrflow cluster status --format json
    """
    kafka, led = open_cluster(folder)
    found = _plain_rows(kafka, led) if led is None or led.handed_back else _led_rows(led)
    if form == "json":
        click.echo(msgspec.json.encode(found))
    else:
        _show(kafka, found)
    zookeeper = [found["zookeeper"]] if found["zookeeper"] else []
    processes = (*zookeeper, *found["gateways"], *found["nodes"])
    stopped = [row["name"] for row in processes if row["state"] != "running"]
    amiss = [f"not running: {', '.join(stopped)}"] if stopped else []
    if led and not led.handed_back and not found["engine"]["decides"]:
        amiss.append(f"no engine decides on {led.bus}: {_why_undecided(found['engine'])}")
    if amiss:
        raise Unreachable("; ".join(amiss))


def _why_undecided(engine: Row) -> str:
    if engine["blocked"]:
        return str(engine["blocked"])
    if engine["state"] == "paused":
        return f"process {engine['pid']} is paused; 'kill -CONT {engine['pid']}' continues it"
    if engine["state"] == "running":
        return f"process {engine['pid']} runs, and commits nothing; its log is {engine['log']}"
    return "'isrflow cluster up' starts one"


def _plain_rows(kafka: KafkaCluster, led: LedCluster | None) -> Row:
    nodes = [_node(node, None) for node in kafka.nodes.values()]
    zookeeper = None if led is None else _zookeeper(led)
    return {"cluster_id": kafka.cluster_id, "engine": None, "zookeeper": zookeeper, "gateways": [], "nodes": nodes}


def _zookeeper(led: LedCluster) -> Row | None:
    return None if led.zookeeper is None else {**_process(led.zookeeper), "port": led.zookeeper.port}


def _led_rows(led: LedCluster) -> Row:
    if not led.bus.exists():
        raise Unreachable(f"there is no bus at {led.bus}: the cluster never started, or its bus was removed")
    with contextlib.closing(led.bus.open(read_only=True)) as bus:
        deciding = decides(bus)
        why = "" if deciding else blocked(bus)
    cluster = led.bus.cluster()
    ours = led.engine.state != "stopped"
    return {
        "cluster_id": led.kafka.cluster_id,
        "engine": {
            "state": led.engine.state if ours else "elsewhere" if deciding else "stopped",
            "decides": deciding,
            "blocked": why or None,
            "controller_epoch": cluster.controller_epoch,
            "pid": led.engine.pid,
            "bus": str(led.bus),
            "log": str(led.engine.log_file) if led.engine.log_file.exists() else None,
            "page": led.engine.page(),
        },
        "zookeeper": _zookeeper(led),
        "gateways": [
            {
                **_process(gateway),
                "gateway": gateway.voter.voter,
                "port": gateway.voter.port,
                "leads": gateway.voter.voter == cluster.quorum.voter,
                "quorum_epoch": cluster.quorum.quorum_epoch,
            }
            for gateway in led.gateways.values()
        ],
        "nodes": [_node(node, cluster) for node in led.kafka.nodes.values()],
    }


def _process(service: Service) -> Row:
    return {"name": service.name, "state": service.state, "pid": service.pid, "log": str(service.log_file)}


def _node(node: KafkaNode, cluster: Cluster | None) -> Row:
    known = cluster.brokers.get(node.spec.node_id) if cluster else None
    return {
        **_process(node),
        "node": node.spec.node_id,
        "roles": list(node.spec.roles),
        "port": node.spec.port,
        "decided": known.state.name if known else None,
    }


def _show(kafka: KafkaCluster, found: Row) -> None:
    click.echo(f"Cluster: {found['cluster_id']}  Bootstrap: {kafka.bootstrap}")
    engine = found["engine"]
    rows: list[tuple[Row, str | None]] = []
    # While no engine decides, the last decisions may be out of date.
    was = "was " if engine and not engine["decides"] else ""
    if engine:
        click.echo(f"Bus: {engine['bus']}" + (f"  Page: {engine['page']}" if engine["page"] else ""))
        decided = f"epoch {engine['controller_epoch']}" if engine["decides"] else "undecided"
        rows.append((engine | {"name": "engine", "port": None}, decided))
    if found["zookeeper"]:
        rows.append((found["zookeeper"], None))
    for row in found["gateways"]:
        leads = f"{'led' if was else 'leads'}, epoch {row['quorum_epoch']}"
        rows.append((row, leads if row["leads"] else "follows"))
    rows += [(row, row["decided"] and was + row["decided"]) for row in found["nodes"]]
    for row, role in rows:
        place = f"pid={row['pid'] or '-':<8} port={row['port'] or '-':<6} {row['log'] or ''}"
        click.echo(f"{row['name']:<20} {row['state']:<9} {role or '':<19} {place}".rstrip())
