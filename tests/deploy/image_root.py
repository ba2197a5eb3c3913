"""A root that the Containerfile's own steps make, on top of this machine's files in place of the base image.

What needs a network is not done here: Debian's packages are this machine's, and Python's are those of the tests.
"""

import json
import re
import shlex
import site
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.deploy.documents import DEPLOY
from tests.support.wheel import build_wheel

RECIPE = DEPLOY / "container" / "Containerfile"
_TIMEOUT_S = 300
# Steps whose commands need a network, or undo one that does.
_OF_NETWORK = re.compile(r"apt-get|/var/lib/apt|requirements\.lock|setuptools\.lock|engine\.lock|doctor --prepare")


class ImageRoot:
    """A container's file system in a mount namespace of its own, until ``close``. Needs root."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._place = directory / "root"
        lines = re.sub(r"\\\n\s*", "", RECIPE.read_text()).splitlines()
        steps = [line.partition(" ")[::2] for line in lines if re.match(r"[A-Z]", line)]
        begins = [number for number, (word, _) in enumerate(steps) if word == "FROM"]
        self.build, self.final = steps[begins[0] : begins[1]], steps[begins[1] :]
        self.environment = {
            name: value
            for word, rest in self.final
            if word == "ENV"
            for name, _, value in (pair.partition("=") for pair in shlex.split(rest))
        }
        self.environment["PATH"] = self.environment["PATH"].replace("$PATH", "/usr/bin:/bin")
        self.entrypoint: list[str] = json.loads(self._last("ENTRYPOINT"))
        self._user = self._last("USER").split(":")
        self._holder = self._mounted()
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _last(self, word: str) -> str:
        return [rest for found, rest in self.final if found == word][-1]

    def _mounted(self) -> "subprocess.Popen[bytes]":
        self._place.mkdir()
        scratch = self._directory / "scratch"
        scratch.mkdir()
        ready = self._directory / "mounted"
        layers = f"lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work"
        steps = (
            f"mount -t tmpfs scratch {scratch}",
            f"mkdir {scratch}/upper {scratch}/work",
            f"mount -t overlay image -o {layers} {self._place}",
            f"mount -t proc proc {self._place}/proc",
            f"mount --rbind /dev {self._place}/dev",
            # Python and the tests' libraries may be in this user's home.
            f"chmod o+x {self._place}/root",
            f"touch {ready}",
            "exec sleep infinity",
        )
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(steps)])
        end_s = time.monotonic() + _TIMEOUT_S
        while not ready.exists():
            if holder.poll() is not None or time.monotonic() > end_s:
                holder.kill()
                raise OSError("the root cannot be mounted")
            time.sleep(0.1)
        return holder

    def _make(self) -> None:
        self._as_root(sys.executable, "-m", "venv", "--copies", "--without-pip", "/opt/isrflow", "--clear")
        [packages] = {f"/opt/isrflow/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"}
        self.write(f"{packages}/libraries.pth", "\n".join(site.getsitepackages()) + "\n")
        wheel = build_wheel(self._directory)
        pip = (sys.executable, "-m", "pip", "--python", "/opt/isrflow/bin/python", "--disable-pip-version-check")
        self._as_root(*pip, "--quiet", "install", "--no-deps", "--no-index", str(wheel))
        self._as_root("mkdir", "-p", "/var/cache/isrflow")
        for word, rest in self.final:
            if word == "RUN":
                for part in rest.split("&&"):
                    if not _OF_NETWORK.search(part):
                        self._as_root("sh", "-ec", part)
            elif word == "COPY":
                self._copy(shlex.split(rest))

    def _copy(self, words: list[str]) -> None:
        flags = dict(word.removeprefix("--").split("=") for word in words if word.startswith("--"))
        *sources, target = [word for word in words if not word.startswith("--")]
        for source in sources:
            if "from" not in flags:
                name = Path(source).name if target.endswith("/") else ""
                self.write(f"{target}{name}", (DEPLOY.parent / source).read_text())
        if "chown" in flags:
            self._as_root("chown", "-R", flags["chown"], target)

    def _inside(self, *words: str) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", *words]

    def _as_root(self, *words: str, text: str | None = None) -> None:
        line = self._inside("chroot", str(self._place), *words)
        done = subprocess.run(line, input=text, capture_output=True, text=True, timeout=_TIMEOUT_S)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def write(self, path: str, text: str) -> None:
        """Write a file in the root, as an image or a mounted Secret has it."""
        self._as_root("mkdir", "-p", str(Path(path).parent))
        self._as_root("tee", path, text=text)
        self._as_root("chgrp", self._user[1], path)

    def seal(self, *writable: str) -> None:
        """Make the root read-only, except for directories that are empty volumes from now on."""
        for place in (*writable, "/tmp"):
            self._as_root("mkdir", "-p", place)
            mounted = f"{self._place}{place}"
            where = f"uid={self._user[0]},gid={self._user[1]}"
            subprocess.run(
                self._inside("mount", "-t", "tmpfs", "-o", where, "volume", mounted), check=True, timeout=_TIMEOUT_S
            )
        subprocess.run(self._inside("mount", "-o", "remount,ro", str(self._place)), check=True, timeout=_TIMEOUT_S)

    def line(self, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return the command that runs ``words`` in the root as the image's user, without any privilege."""
        user, group = self._user
        ids = (f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs", "--bounding-set=-all")
        given = [f"{name}={value}" for name, value in (self.environment | dict(environment)).items()]
        # The first process has the number 1, and all others end with it.
        alone = ("unshare", "--pid", "--fork", f"--mount-proc={self._place}/proc")
        chroot = (*alone, "chroot", str(self._place), "setpriv", *ids)
        return self._inside(*chroot, "env", "-i", f"--chdir={self._last('WORKDIR')}", *given, *words)

    def close(self) -> None:
        """End the namespace. What is mounted in it is gone with its last process."""
        self._holder.kill()
        self._holder.wait()
