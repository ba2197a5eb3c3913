"""Nouns: what the control plane knows, what it is told (events) and what it answers (decisions).

Nothing here reads a clock, draws a random number, or touches a file or a socket.
"""
