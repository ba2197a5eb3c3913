"""``isrflow cluster`` on a folder."""

from pathlib import Path

from click.testing import CliRunner

from cli.commands import command


def on_cluster(folder: Path, *arguments: str) -> tuple[int, str]:
    """Call ``isrflow cluster``, and return its exit code and what it printed."""
    result = CliRunner().invoke(command, ["cluster", *arguments, "--dir", str(folder)])
    return result.exit_code, result.output
