"""The command line: one small file per command, imported only when it is used."""

import sys


def main() -> None:
    """Run the command line."""
    # Imports are in here, so that Ctrl-C during one ends it without a traceback.
    try:
        _run()
    except KeyboardInterrupt:
        # As ``cli.errors.Interrupted`` says it, which may not be imported yet.
        sys.stderr.write("\nAborted!\n")
        sys.exit(130)


def _run() -> None:
    from cli.closed_output import reader_may_leave
    from cli.commands import command
    from cli.output import never_fail_to_encode

    never_fail_to_encode()
    # Click prints errors outside of what it calls.
    with reader_may_leave():
        command(prog_name="isrflow")
