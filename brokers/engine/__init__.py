"""The way from any broker to the engine and back: follow its decisions and publish events, across failures.

Mock brokers and gateways differ in what they do with a decision and in which events they send. How they read the
decision log, publish in order, and wait for a bus that is out of reach is the same, and is here.
"""
