"""Verbs: what follows from what. Pure functions, with ``step`` as the one door.

An event's way through this room:

    step ─► clock ─► deadline ─► one rule ─► commit ─► working_state    what the batch has led to so far
             │           │          │  │        └────► decision_recorder  what is said, in whose name
             │           │          │  └ asks: who should lead, which replicas are online, ...
             │           │          └ chosen by the event's type in the table step.HANDLERS
             │           └ was an admin's request found too late?
             └ does the event count by its time, and on a ``shadow`` at all?

A rule is given a ``batch``: the event at hand, the ``working_state`` and the ``decision_recorder``. It reads the state,
decides, and commits values; it sets nothing itself. ``commit`` is the pipeline for partitions and explains it.
``commit_reports`` commits what replicas report of their logs, ``commit_topic`` topics, ``commit_cluster`` what all
shards share, and ``commit_observed`` what an observed controller decided. ``commit_alike`` asks a rule about one of
many partitions that are alike place by place, and commits the same for the others.

Rules, one for each kind of event:
  brokers    ``liveness``, ``registration``, ``sessions``, ``shutdown``, ``isr``, ``isr_request``, ``watermark``,
             ``log_end_report``, ``report``, ``producer_ids``, ``log_directories``,
             ``lost_logs``, ``written_isr``, ``replica_log``
  admins     ``topics``, ``deletion``, ``requested_reassignment``, ``requested_election``,
             ``config``, ``acls``, ``adoption``, ``level``, ``entities`` (with ``entity_checks``, ``quota_checks``,
             ``scram_checks``, ``feature_checks``, ``token_checks``, ``voter_checks``)
  the engine ``tick``, ``takeover``, ``balance``, ``no_op``, ``gateways``, ``hearing``
  a shadow   ``observation`` (with ``observed_settings``, ``observed_reasons``), which asks ``audit`` what the rules
             would have decided (``kraft_dialect``) and what no controller may do (``observed_invariants``,
             ``known_defects``)

What rules call about one partition at a time, mostly to get a ``PartitionChange``:
  ``election``, ``candidates``, ``partition_machine``, ``replica_machine``, ``reassignment``, ``placement``, ``lag``,
  ``eligible``, ``unclean_recovery``
What goes through all partitions of a broker:
  ``availability`` when it goes or comes, ``eligible_leaders`` when its logs may have lost their ends, ``removal`` for
  what a reassignment left behind, ``request_epochs`` for how far it is with what it was asked to do
What answers for many partitions at once:
  ``partition_results``
What is asked without an event:
  ``loss``: what would follow if brokers were lost
What comes before a rule:
  ``clock`` and ``deadline``
What rules call before they decide:
  ``fencing`` refuses senders with stale epochs, and ``config_limits`` refuses settings that are too large
What is called to record a decision:
  ``raw_text`` shows a refused event's text; ``broker_settings`` announces the settings that brokers act on

The working state has ``working_topic`` for each topic in use, with its ``working_partitions``, and ``running_totals``
for what is counted. ``broker_sets`` says which brokers may lead, serve and report. ``apply`` adds a change to a
partition and raises its epochs.

Around ``step``: ``guard`` keeps an event that the rules fail on from stopping the others, ``routing`` names an
event's shard, and ``replay`` runs a recorded event log through all of it. ``resharding`` puts a stored state into
another number of shards.
"""
