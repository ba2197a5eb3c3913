"""Publish events on a bus of isrflow, and read its decisions.

    import isrflow

    with isrflow.connect("sqlite:data/bus.db") as bus:
        answer = bus.ask({"kind": "broker_register", "broker": 1, "incarnation": "a"})
        beat = {"kind": "broker_heartbeat", "broker": 1, "broker_epoch": answer["broker_epoch"]}
        bus.publish({**beat, "want_fence": False, "want_shutdown": False})
        for decision in bus.decisions(wait_s=1.0):
            print(decision)

This package is for programs that feed the engine or follow it. It imports no other package of isrflow, because those
have plain names (``state``, ``conf``), which a program may use for modules of its own. It needs neither Spark nor Java.
"""

from isrflow.client import Client as Client
from isrflow.connect import connect as connect
from isrflow.errors import BusError as BusError
from isrflow.errors import DamagedError as DamagedError
from isrflow.errors import EngineOnlyError as EngineOnlyError
from isrflow.errors import NoAnswerError as NoAnswerError
from isrflow.errors import NoBusError as NoBusError
from isrflow.errors import TrimmedError as TrimmedError
