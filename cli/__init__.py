"""The command line: one small file per command, imported only when it is used."""

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    # Imports are in here, so that Ctrl-C during one ends it without a traceback.
    try:
        if sys.argv[1:2] == ["run"]:
            # Until the engine handles signals itself, a stop leaves nothing half done.
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
        _open_closed_streams()
        _run()
    except KeyboardInterrupt:
        # The text of ``cli.errors.Interrupted``, which may not be imported yet.
        sys.stderr.write("\nAborted!\n")
        sys.exit(130)


def _open_closed_streams() -> None:
    """Let closed standard streams lead nowhere. Otherwise the next file that is opened would take the place of one.

    Prints of the JVM or of a library would then go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            if number == 2:
                sys.stderr = os.fdopen(number, "w", closefd=False)


def _run() -> None:
    from cli.closed_output import fail_if_closed, reader_may_leave
    from cli.commands import command
    from cli.output import never_fail_to_encode

    fail_if_closed()
    never_fail_to_encode()
    # Click prints errors outside of what it calls.
    with reader_may_leave():
        command(prog_name="isrflow")
