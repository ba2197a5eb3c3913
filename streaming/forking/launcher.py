"""The program that Spark runs as its Python: ``launcher.py PYTHON DIRECTORY -m MODULE...``.

It runs as a script in an interpreter without site packages (``-IS``), so that it starts within milliseconds.
"""

import array
import json
import os
import socket
import sys

# Where the server listens, in its directory. A relative name is never too long for a socket.
SOCKET = "forks"


def main() -> None:
    """Have the server fork a process, and exit with its code. Without a server, become an ordinary Python."""
    python, directory, *arguments = sys.argv[1:]
    folder, hub = os.getcwd(), socket.socket(socket.AF_UNIX)
    try:
        if arguments[0] != "-m":
            # Spark also asks for Python's version, with -c. That imports nothing slow, so it needs no fork.
            raise ConnectionError
        os.chdir(directory)
        hub.connect(SOCKET)
    except OSError:
        os.chdir(folder)
        os.execv(python, [python, *arguments])
    request = json.dumps([arguments[1:], dict(os.environ), folder]).encode()
    streams = array.array("i", [0, 1, 2])
    hub.sendmsg([len(request).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    hub.sendall(request)
    os._exit((hub.recv(1) or b"\1")[0])


if __name__ == "__main__":
    main()
