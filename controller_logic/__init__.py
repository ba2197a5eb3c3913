"""Verbs: what follows from what. Pure functions, with ``step`` as the one door.

``step`` takes an event to its rule: ``liveness``, ``shutdown``, ``isr``, ``watermark``, ``report``, ``admin``,
``deletion``, ``config``, ``requested_election``, ``requested_reassignment``, ``balance``, ``gateways``,
``producer_ids``, ``no_op``, ``takeover``; ``clock`` and ``fencing`` stand before them, ``deadline`` before what
admins ask, and ``registration`` before a broker that wants an id. They ask ``election``, ``partition_machine``,
``replica_machine``, ``reassignment`` and ``placement`` what should be, for one partition, as a
``PartitionChange``; ``availability`` does so for all that brokers which go and come have a part in,
``removal`` for what a reassignment left behind. ``sessions`` says what counts as a broker's silence,
``lag`` how far each replica's log has come, ``progress`` how far what was asked of it, ``config_limits``
how large settings may be, and ``broker_settings`` which of them brokers are told.

The ``draft`` holds the state meanwhile, and in it each topic as a ``topic_draft``; it makes each change by
``apply``, and writes the decision into the ``minutes``. ``guard`` keeps an event that the rules fail on from
stopping the others, ``routing`` names the shard of an event, and ``log`` runs a recorded log through all of it.
"""
