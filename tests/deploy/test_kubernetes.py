"""What deploy/kubernetes says is true: of Kubernetes and its operators, of the engine, and of its other files."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from conf.environment import given_in
from conf.loader import KEYS, load
from conf.security.token import token_of
from tests.deploy.commands import understood
from tests.deploy.documents import DEPLOY, KUBERNETES, Document, documents, files, kind_of, pod_of, read
from tests.support.waiting import TIMEOUT_S

SCHEMAS = Path(__file__).parent / "schemas"
ROOT = DEPLOY.parent
CONTAINERFILE = (DEPLOY / "container" / "Containerfile").read_text()
SETTINGS = load(KUBERNETES / "base" / "engine.toml")
SECRETS = (SETTINGS.metrics_ssl_keystore_location, SETTINGS.metrics_token_file, SETTINGS.kafka_client_config)
DOCUMENTS = list(documents())
PODS = [(kind_of(one), pod) for one in DOCUMENTS if (pod := pod_of(one))]
RENDERED = ("base", "monitored")


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{kind}.json").read_text())
    return found


def one(kind: str) -> Document:
    (found,) = (document for document in DOCUMENTS if kind_of(document).startswith(kind))
    return found


def container(pod: Document) -> Document:
    (found,) = pod["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=kind_of)
def test_a_document_follows_the_schema_of_its_kind(document: Document) -> None:
    jsonschema.validate(document, schema(kind_of(document)))
    if pod := pod_of(document):
        jsonschema.validate(pod, schema("PodTemplateSpec.v1"))
    wrong = copy.deepcopy(document)
    wrong["spce" if kind_of(document).startswith("ServiceAccount") else "spec"] = {"no-such-field": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema(kind_of(document)))


def test_every_file_belongs_to_a_kustomization_that_finds_it() -> None:
    used = set()
    for path in files():
        if path.name != "kustomization.yaml":
            continue
        kustomization = read(path)
        assert kustomization["apiVersion"] == "kustomize.config.k8s.io/v1beta1"
        for name in kustomization["resources"]:
            target = (path.parent / name).resolve()
            used.add(target / "kustomization.yaml" if target.is_dir() else target)
        for made in kustomization.get("configMapGenerator", []):
            assert all((path.parent / name).is_file() for name in made["files"])
    on_top = {KUBERNETES / name / "kustomization.yaml" for name in RENDERED}
    assert used | on_top == set(files())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, which has kustomize in it")
@pytest.mark.parametrize("name", RENDERED)
def test_kustomize_renders_each_folder(name: str) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", KUBERNETES / name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    names = {(document["kind"], document["metadata"]["name"]) for document in made}
    # With a hash of the settings, so that other settings restart the engines.
    (settings,) = [name for kind, name in names if kind == "ConfigMap"]
    (pods,) = [document for document in made if document["kind"] == "StatefulSet"]
    assert settings in json.dumps(pods)
    assert {("Service", "isrflow"), ("NetworkPolicy", "isrflow")} <= names
    assert len(names) == len(made)


def test_the_settings_are_settings_for_a_bus_on_kafka_and_a_checkpoint_on_the_volume() -> None:
    assert SETTINGS.bus_name.startswith("kafka://")
    for _, pod in PODS:
        mounts = {mount["name"]: mount["mountPath"] for mount in container(pod)["volumeMounts"]}
        assert Path(SETTINGS.checkpoint_dir).is_relative_to(mounts["state"])
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        claims = {claim["metadata"]["name"] for claim in one("StatefulSet")["spec"]["volumeClaimTemplates"]}
        assert set(mounts) <= set(volumes) | claims
        assert set(volumes) <= set(mounts)
        assert "state" in claims
        for secret in SECRETS:
            assert Path(secret).parent == Path(mounts["secrets"])
        (made,) = read(KUBERNETES / "base" / "kustomization.yaml")["configMapGenerator"]
        assert volumes["settings"]["configMap"]["name"] == made["name"]
        environment = {entry["name"]: entry.get("value", "x") for entry in container(pod)["env"]}
        assert environment["ISRFLOW_CONF"] in {f"{mounts['settings']}/{name}" for name in made["files"]}
        given_in(environment, KEYS)


@pytest.mark.parametrize(("kind", "pod"), PODS)
def test_an_engine_that_is_restarted_waits_for_one_that_decides(kind: str, pod: Document) -> None:
    assert understood(container(pod)["args"])["standby"] is True


@pytest.mark.parametrize(("kind", "pod"), PODS)
def test_a_pod_is_hardened_and_asks_the_engine_whether_it_works(kind: str, pod: Document) -> None:
    user = re.findall(r"^USER (\d+):(\d+)$", CONTAINERFILE, re.MULTILINE)
    security = pod["spec"]["securityContext"]
    assert [(str(security["runAsUser"]), str(security["runAsGroup"]))] == user
    assert security["runAsNonRoot"]
    assert not container(pod)["securityContext"]["allowPrivilegeEscalation"]
    assert container(pod)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    # Otherwise a Service whose name begins with isrflow sets variables of its own.
    assert pod["spec"]["enableServiceLinks"] is False
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["terminationGracePeriodSeconds"] >= 60
    probes = {name: container(pod)[name]["exec"]["command"] for name in container(pod) if name.endswith("Probe")}
    assert probes
    health = json.loads(re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[0])
    # A rollout ends one engine only when the other could decide. An engine that still starts is worth keeping.
    asked = {name: "/standbyz" if name == "readinessProbe" else "/healthz" for name in probes}
    assert probes == {name: [*health[:-1], path] for name, path in asked.items()}


def test_a_rollout_waits_until_an_engine_could_decide() -> None:
    assert "readinessProbe" in container(dict(PODS)["StatefulSet.apps"])


@pytest.mark.parametrize(("kind", "pod"), PODS)
def test_selectors_of_pods_find_these_and_their_port(kind: str, pod: Document) -> None:
    labels, (port,) = pod["metadata"]["labels"], container(pod)["ports"]
    assert port == {"name": "metrics", "containerPort": SETTINGS.metrics_port}
    monitor, service, policy = one("PodMonitor")["spec"], one("Service.v1")["spec"], one("NetworkPolicy")["spec"]
    selectors = [monitor["selector"]["matchLabels"], service["selector"], policy["podSelector"]["matchLabels"]]
    selectors.append(one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"])
    assert all(selector.items() <= labels.items() for selector in selectors)
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == (port["name"], "https")
    assert endpoint["authorization"]["credentials"]["key"] == Path(SETTINGS.metrics_token_file).name
    (secrets,) = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    assert endpoint["authorization"]["credentials"]["name"] == endpoint["tlsConfig"]["ca"]["secret"]["name"] == secrets
    # Beyond loopback the engine starts only with a certificate and a token.
    assert SETTINGS.metrics_ssl_keystore_location
    assert [entry["targetPort"] for entry in service["ports"]] == [port["containerPort"]]
    assert [entry["port"] for entry in policy["ingress"][0]["ports"]] == [port["containerPort"]]
    bus_port = int(SETTINGS.bus_name.rpartition(":")[2].partition("/")[0])
    assert bus_port in [entry["port"] for entry in policy["egress"][0]["ports"]]


def test_an_image_is_named_once_and_its_tag_is_given_by_whoever_built_it() -> None:
    (renamed,) = read(KUBERNETES / "base" / "kustomization.yaml")["images"]
    spec = dict(PODS)["StatefulSet.apps"]["spec"]
    assert {one["image"] for one in (*spec["containers"], *spec["initContainers"])} == {renamed["name"]}
    assert renamed["newTag"] == "VERSION-COMMIT"
    assert spec["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]


def test_the_token_has_no_newline_which_the_prometheus_operator_would_send(tmp_path: Path) -> None:
    lines = (ROOT / "docs" / "running.md").read_text().splitlines()
    (line,) = [line for line in lines if line.endswith("> metrics.token")]
    subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, check=True, timeout=TIMEOUT_S)
    text = (tmp_path / "metrics.token").read_text()
    assert text == text.strip()
    (tmp_path / "with-newline").write_text(f"{text}\n")
    for name in ("metrics.token", "with-newline"):
        token = token_of(str(tmp_path / name), {})
        assert token is not None
        assert token.is_text(text), "isrflow itself takes both"
