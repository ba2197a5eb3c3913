"""Spark's Python processes, forked from a process that has imported everything, and not started cold.

The problem: for one query Spark starts seven Pythons, one after the other. Each spends more than a second of CPU time
on importing pandas, pyarrow and pyspark, and a busy machine does not finish that in the ten seconds that Spark gives.

The insight: they all import the same. So one process imports it while the JVM starts, and forks.

    engine -- starts --> server: imports everything once, then waits
    JVM -- runs "python -m module" --> launcher: passes its streams, arguments and environment on, and waits
    server -- forks --> child: runs the module with the launcher's streams

Spark sees a Python that answers within milliseconds. The child ends as Spark's own do, when its streams end. If there
is no server, the launcher becomes an ordinary Python.
"""
