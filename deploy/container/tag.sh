#!/usr/bin/env bash
# Print the tag of an image of this checkout: its version and its commit, with "-changed" if files differ from the commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
changed=$([ -z "$(git status --porcelain)" ] || echo -changed)
echo "$version-$(git rev-parse --short=12 HEAD)$changed"
