"""The nouns: what the control plane knows, and the words in which it is told and answers.

Nothing here reads a clock, draws a random number, or touches a file or a socket.
"""
