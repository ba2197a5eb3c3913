#!/usr/bin/env bash
# Make .venv with the locked versions and isrflow itself. Safe to run again at any time.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
lock=deploy/requirements.lock

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "isrflow needs Python 3.11 or newer and found none: install it, or point to it with 'make setup PYTHON=/path/to/python3'." >&2
    exit 1
}

if ! "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
    python=$(find_python)
    echo "making $venv with $("$python" --version)"
    if ! "$python" -m venv --clear "$venv"; then
        echo "$python cannot make a virtual environment: install its venv module (on Debian and Ubuntu: python3-venv)." >&2
        exit 1
    fi
fi

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}

# setuptools goes first, because it builds packages that come as source (pyspark), and no build may fetch anything unlocked.
awk '/^[a-zA-Z0-9]/ { keep = /^setuptools==/ } keep' "$lock" >"$venv/setuptools.lock"
echo "installing the versions of $lock (the first time takes a minute or two)"
pip install --quiet --require-hashes -r "$venv/setuptools.lock"
pip install --quiet --require-hashes --no-build-isolation --use-pep517 -r "$lock"
pip install --quiet --no-deps --no-build-isolation -e .
echo "preparing Spark's classes (half a minute)"
"$venv/bin/isrflow" doctor --prepare >"$venv/prepare.log" 2>&1 ||
    echo "engines will start slower: 'isrflow doctor --prepare' failed, $venv/prepare.log says why" >&2
cat "$lock" pyproject.toml | cksum >"$venv/setup.stamp"
echo "ready: $venv/bin/isrflow"
