"""The YAML documents of deploy/kubernetes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
Document = dict[str, Any]


def files() -> list[Path]:
    """List the files, in order."""
    return sorted(KUBERNETES.rglob("*.yaml"))


def read(path: Path) -> Document:
    """Read the one document of a file."""
    (document,) = yaml.safe_load_all(path.read_text())
    assert isinstance(document, dict)
    return document


def documents() -> Iterator[Document]:
    """Give the documents that go to Kubernetes."""
    return (read(path) for path in files() if path.name != "kustomization.yaml")


def kind_of(document: Document) -> str:
    """Return the kind and its group, such as ``StatefulSet.apps``."""
    return f"{document['kind']}.{document['apiVersion'].partition('/')[0]}"


def pod_of(document: Document) -> Document | None:
    """Return the pod that a document describes: its labels, and its spec."""
    spec = document.get("spec", {})
    if document["kind"] == "StatefulSet":
        template: Document = spec["template"]
        return template
    return None
