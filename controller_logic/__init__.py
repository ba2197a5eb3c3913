"""Verbs: what follows from what. Pure functions, with ``step`` as the one door.

``step`` takes an event to its rule: ``liveness``, ``shutdown``, ``isr``, ``watermark``, ``report``,
``admin``, ``deletion``, ``config``, ``requested_election``, ``requested_reassignment``, ``takeover``;
``fencing`` stands before them. They ask ``election``, ``partition_machine``, ``replica_machine``,
``reassignment`` and ``placement`` what should be, for one partition, as a ``PartitionChange``;
``availability`` does so for all that brokers which go and come have a part in, ``removal`` for what a
reassignment left behind. The ``draft`` makes each change by ``apply``, and writes the decision into
the ``minutes``.
"""
