"""What the service manager hears of this process: that it is ready, as systemd's ``Type=notify`` expects it."""

import os
import socket
from collections.abc import Mapping

READY = b"READY=1"
VARIABLE = "NOTIFY_SOCKET"
_TIMEOUT_S = 1.0


def tell_ready(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell the service manager that this process is ready (sd_notify). Return whether it took the message.

    Nothing happens if no manager asked for it.
    """
    address = environment.get(VARIABLE, "")
    if not address:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_manager:
        to_manager.settimeout(_TIMEOUT_S)
        try:
            # An address that begins with @ is in Linux's abstract namespace.
            to_manager.sendto(READY, address.replace("@", "\0", 1) if address.startswith("@") else address)
        except OSError:
            return False
    return True


class ReadyOnce:
    """Tells the service manager that this process is ready, until it has taken the message once."""

    def __init__(self) -> None:
        self._is_told = VARIABLE not in os.environ

    def look(self, is_ready: bool) -> None:
        """Tell it if the process is ready now."""
        if is_ready and not self._is_told:
            self._is_told = tell_ready()
