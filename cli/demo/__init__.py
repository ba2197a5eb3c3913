"""Show a cluster lose a broker and keep its records."""

import click


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the cluster at the end until Ctrl-C, and say how to play with it.")
@click.option("--plain", is_flag=True, help="Print lines instead of the live view, as when the output is no terminal.")
def command(keep: bool, plain: bool) -> None:
    """Start a cluster of three mock brokers, kill a leader, and count every record.

    It takes about a minute, works in a temporary directory, and needs no network but the loopback.
    The broker session is 3 s instead of Kafka's 9 s, so that nobody has to wait.

    \b
    Examples:
      isrflow demo
      isrflow demo --keep
    """
    # A client for Kafka and a terminal view: the other commands do not pay for them.
    from isrflow.cli.demo.performance import perform

    perform(keep=keep, plain=plain)
