"""Spark's warning of pandas 3 is in the log of no engine, because no row of ours is ever in a frame of pandas."""

import os
import subprocess
import sys
from pathlib import Path

# Spark asks this when it is imported, and when a query is made.
PANDAS_3 = """
import sys
import pandas
pandas.__version__ = "3.1.1"
from pyspark.sql.pandas.utils import require_minimum_pandas_version
"""
ASKED = f"{PANDAS_3}require_minimum_pandas_version()\n"
ENGINE = f"""{PANDAS_3}
from pathlib import Path
from pyspark import SparkContext
from conf.settings import Settings
from streaming import session

def ask(conf):
    require_minimum_pandas_version()
    print("asked")
    sys.exit()

SparkContext._ensure_initialized = ask
session.choose_java()
session.launch(Settings(spark={{"spark.master": "spark://master:7077"}}), Path())
"""


def told(folder: Path, *arguments: str) -> tuple[str, str]:
    """Run Python in a folder of modules; return what it printed, and what to standard error."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, input="", capture_output=True, text=True)
    return done.stdout, done.stderr


def test_spark_warns_of_pandas_3(tmp_path: Path) -> None:
    assert "FutureWarning: PySpark does not yet fully support pandas" in told(tmp_path, "-c", ASKED)[1]


def test_the_processes_of_a_query_do_not_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(ASKED)
    assert told(tmp_path, "-m", "streaming.forking.server", "asked") == ("ready\n", "")


def test_an_engine_does_not_repeat_it(tmp_path: Path) -> None:
    assert told(tmp_path, "-c", ENGINE) == ("asked\n", "")
