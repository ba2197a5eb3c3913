"""Download a file over HTTP, with bounds on the waiting, the number of tries and the length."""

import time
import urllib.error
import urllib.request
from pathlib import Path

FILE_BYTES_MAX = 256 * 1024 * 1024
TRIES_MAX = 3
_TIMEOUT_S = 60
PAUSE_S = 1.0
_CHUNK_BYTES = 1024 * 1024


def download(url: str, place: Path) -> None:
    """Write what is at ``url`` to ``place``. Raises ``OSError`` after ``TRIES_MAX`` tries.

    A refusal by the server (4xx) is not repeated.
    """
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            _download(url, place)
            return
        except OSError as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or not tries_left:
                raise
            time.sleep(PAUSE_S)


def _download(url: str, place: Path) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, place.open("wb") as file:
        expected = answer.headers.get("Content-Length")
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
            if file.tell() > FILE_BYTES_MAX:
                raise OSError(f"{url} has more than {FILE_BYTES_MAX} bytes")
        if expected is not None and file.tell() != int(expected):
            raise OSError(f"{url} ended after {file.tell()} of {expected} bytes")
