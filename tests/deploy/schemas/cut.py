"""Cut a public schema down to what the files in deploy/kubernetes use, so that a copy is small.

    .venv/bin/python -m tests.deploy.schemas.cut KIND ORIGINAL   writes tests/deploy/schemas/KIND.json

ORIGINAL is a CustomResourceDefinition (YAML), or a JSON schema of a kind of Kubernetes' own. What the files use is
kept whole: types, required fields, allowed values. A field that they do not use is kept by its name alone, and
descriptions are left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.documents import documents, kind_of, pod_of

HERE = Path(__file__).parent
# Pods are checked by themselves.
POD = "PodTemplateSpec.v1"
_KEPT = (
    "type",
    "enum",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "anyOf",
    "oneOf",
)


def cut(schema: Any, found: list[Any], definitions: dict[str, Any]) -> Any:
    """Return the part of ``schema`` that says something about the values ``found``."""
    if not isinstance(schema, dict) or not found:
        return {}
    if "$ref" in schema:
        return cut(definitions[schema["$ref"].rpartition("/")[2]], found, definitions)
    kept = {key: schema[key] for key in _KEPT if key in schema and "$ref" not in json.dumps(schema[key])}
    maps = [one for one in found if isinstance(one, dict)]
    if "properties" in schema:
        kept["properties"] = {
            name: cut(inner, [one[name] for one in maps if name in one], definitions)
            for name, inner in schema["properties"].items()
        }
        kept["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields", False))
    elif isinstance(schema.get("additionalProperties"), dict):
        values = [value for one in maps for value in one.values()]
        kept["additionalProperties"] = cut(schema["additionalProperties"], values, definitions)
    if "items" in schema:
        values = [value for one in found if isinstance(one, list) for value in one]
        kept["items"] = cut(schema["items"], values, definitions)
    return kept


def found_of(kind: str) -> list[Any]:
    """List the documents of a kind, such as ``Service.v1``."""
    return [one for one in documents() if kind_of(one) == kind]


def main(kind: str, original: Path) -> None:
    """Write the copy for ``kind``."""
    whole = yaml.safe_load(original.read_text())
    definitions: dict[str, Any] = {}
    if whole.get("kind") == "CustomResourceDefinition":
        stored = next(version for version in whole["spec"]["versions"] if version["storage"])
        whole = stored["schema"]["openAPIV3Schema"]
        # Every document has these, and not every definition says so.
        whole["properties"] |= {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        }
    elif (beside := original.parent / "_definitions.json").exists():
        definitions = json.loads(beside.read_text())["$defs"]
    found = [pod for one in documents() if (pod := pod_of(one))] if kind == POD else found_of(kind)
    text = json.dumps(cut(whole, found, definitions), separators=(",", ":"), sort_keys=True)
    (HERE / f"{kind}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
