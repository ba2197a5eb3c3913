"""Spark's warning of pandas 3."""

import warnings


def ignore_pandas_warning() -> None:
    """Keep Spark from warning that it does not fully support pandas 3. Rows here go through Arrow alone."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
