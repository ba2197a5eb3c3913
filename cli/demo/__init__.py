"""Show that a cluster loses a broker and keeps its records."""

import click


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the cluster at the end until Ctrl-C, and say how to play with it.")
@click.option("--plain", is_flag=True, help="Print lines instead of the live view, as when the output is no terminal.")
@click.option("--kafka", is_flag=True, help="With real brokers of Kafka, led through a gateway, and Kafka's own tools.")
def command(keep: bool, plain: bool, kafka: bool) -> None:
    """Start a cluster of three brokers, kill a leader, and count every record.

    It takes about a minute with mock brokers and two with Kafka's own, and works in a temporary directory. It needs no
    network but the loopback, and for --kafka once the jars of Kafka, which it fetches.

    \b
    Examples:
      isrflow demo
      isrflow demo --kafka
      isrflow demo --keep
    """
    # Imports a Kafka client and a terminal view, which the other commands do not need.
    from cli.demo.runner import run_demo

    run_demo(kafka=kafka, keep=keep, plain=plain)
