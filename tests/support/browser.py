"""A headless Chromium, driven over the WebDriver protocol by Debian's chromedriver."""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.waiting import TIMEOUT_S

# A busy machine may take long to start a browser.
# The browser sends nothing to other machines, and keeps nothing.
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
ENTER, ESCAPE, LEFT, DOWN = "\ue007", "\ue00c", "\ue012", "\ue015"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str:
    """Return what is missing for a test in a browser; empty if nothing is."""
    gone = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(gone)} (Debian's packages chromium and chromium-driver)" if gone else ""


class Browser:
    """One window."""

    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a command, and return its value."""
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read())["value"]

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str) -> Any:
        """Run JavaScript in the page, and return what it returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.run(f"return document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[_ELEMENT]}/click")

    def press(self, *keys: str) -> None:
        """Press and release each key in turn, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def theme(self, name: str) -> None:
        """Set the theme that the browser prefers."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        params = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        self.call("POST", "/goog/cdp/execute", params)

    def resize(self, width: int, height: int = 1000) -> None:
        """Give the page a size in pixels, which may be smaller than a window can be."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """Return the errors that the browser logged: failed scripts, and files that were refused or missing."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]


@contextlib.contextmanager
def browser(directory: Path, width: int = 1280, height: int = 1000) -> Iterator[Browser]:
    """Start a browser with its files in ``directory``, and end it."""
    with subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        try:
            assert driver.stdout
            lines = (re.search(r"successfully on port ([0-9]+)", line) for line in driver.stdout)
            port = next(found[1] for found in lines if found)
            base = f"http://127.0.0.1:{port}"
            arguments = [*ARGUMENTS, f"--window-size={width},{height}", f"--user-data-dir={directory}"]
            wanted = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "WARNING"}}
            made = Browser(base).call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            window = Browser(f"{base}/session/{made['sessionId']}")
            try:
                yield window
            finally:
                window.call("DELETE", "")
        finally:
            driver.terminate()
