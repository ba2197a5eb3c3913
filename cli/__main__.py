"""The command line as a file, because spark-submit runs nothing else: ``spark-submit … cli/__main__.py run``."""

import sys
from pathlib import Path

# A script's own folder comes first, where run.py or errors.py could be taken for other packages' modules.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _HERE]

from cli import main  # noqa: E402

main()
