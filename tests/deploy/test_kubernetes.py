"""What deploy/kubernetes says is true: of Kubernetes and its operators, of the engine, and of its other files."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from brokers.gateways.kraft import settings as kraft_settings
from conf.environment import given_in
from conf.loader import KEYS, load
from conf.security.exposure import MetricsSettings
from conf.security.token import token_of
from tests.deploy.commands import understood
from tests.deploy.documents import DEPLOY, KUBERNETES, Document, documents, files, kind_of, pod_of, read
from tests.support.waiting import TIMEOUT_S

SCHEMAS = Path(__file__).parent / "schemas"
ROOT = DEPLOY.parent
CONTAINERFILE = (DEPLOY / "container" / "Containerfile").read_text()
PROFILES = ROOT / "conf" / "profiles"
ENGINE, GATEWAY = "isrflow", "isrflow-gateway"
SETTINGS = load(KUBERNETES / "base" / "engine.toml")
# As of the pod of the first gateway.
OF_POD = {
    "ISRFLOW_NODE_ID": "100",
    "ISRFLOW_SSL_KEYSTORE_LOCATION": "/etc/isrflow-gateway-secrets/isrflow-gateway-100.pem",
}
GATEWAY_SETTINGS = kraft_settings.load(KUBERNETES / "base" / "gateway.toml", environment=OF_POD)
_METRICS = ("metrics.ssl.keystore.location", "metrics.token.file", "kafka.client.config")
SECRETS = {
    ENGINE: [getattr(SETTINGS, name.replace(".", "_")) for name in _METRICS],
    GATEWAY: [
        getattr(GATEWAY_SETTINGS, name.replace(".", "_"))
        for name in (*_METRICS, "ssl.keystore.location", "ssl.truststore.location")
    ],
}
DOCUMENTS = list(documents())
PODS = [(one["metadata"]["name"], pod) for one in DOCUMENTS if (pod := pod_of(one))]
RENDERED = ("base", "monitored")


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{kind}.json").read_text())
    return found


def one(kind: str, name: str = ENGINE) -> Document:
    (found,) = (
        document
        for document in DOCUMENTS
        if kind_of(document).startswith(kind) and document["metadata"]["name"] == name
    )
    return found


def container(pod: Document) -> Document:
    (found,) = pod["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: f"{kind_of(one)} {one['metadata']['name']}")
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
    # With a hash of the settings, so that other settings restart their pods.
    settings = sorted(name for kind, name in names if kind == "ConfigMap")
    pods = sorted(json.dumps(document) for document in made if document["kind"] == "StatefulSet")
    assert len(settings) == len(pods) == 2
    assert all(any(name in pod for pod in pods) for name in settings)
    assert {("Service", "isrflow"), ("NetworkPolicy", "isrflow-gateway")} <= names
    assert len(names) == len(made)


def test_the_settings_are_settings_for_a_bus_on_kafka_and_a_checkpoint_on_the_volume() -> None:
    assert SETTINGS.bus_name.startswith("kafka://")
    assert SETTINGS.bus == GATEWAY_SETTINGS.bus
    for name, pod in PODS:
        mounts = {mount["name"]: mount["mountPath"] for mount in container(pod)["volumeMounts"]}
        place = SETTINGS.checkpoint_dir if name == ENGINE else GATEWAY_SETTINGS.metadata_log_dir
        assert Path(place).is_relative_to(mounts["state"])
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        claims = {claim["metadata"]["name"] for claim in one("StatefulSet", name)["spec"]["volumeClaimTemplates"]}
        assert set(mounts) <= set(volumes) | claims
        assert set(volumes) <= set(mounts)
        assert "state" in claims
        for secret in SECRETS[name]:
            assert Path(secret).parent == Path(mounts["secrets"])
        generated = read(KUBERNETES / "base" / "kustomization.yaml")["configMapGenerator"]
        (made,) = [one for one in generated if one["name"] == volumes["settings"]["configMap"]["name"]]
        environment = {entry["name"]: entry.get("value", "x") for entry in container(pod)["env"]}
        given = environment.get("ISRFLOW_CONF") or container(pod)["args"][-1]
        assert given in {f"{mounts['settings']}/{file}" for file in made["files"]}
        given_in(environment, KEYS)


def test_an_engine_that_is_restarted_waits_for_one_that_decides() -> None:
    assert understood(container(dict(PODS)[ENGINE])["args"])["standby"] is True


def test_each_gateway_has_an_id_an_address_and_a_certificate_of_its_own() -> None:
    spec, pod = one("StatefulSet", GATEWAY)["spec"], dict(PODS)[GATEWAY]
    assert container(pod)["args"][:3] == ["gateway", "kraft", "--conf"]
    ids = range(spec["ordinals"]["start"], spec["ordinals"]["start"] + spec["replicas"])
    voters = kraft_settings.identity_of(GATEWAY_SETTINGS).voters
    assert [voter.voter for voter in voters] == list(ids)
    environment = {entry["name"]: entry for entry in container(pod)["env"]}
    index = "metadata.labels['apps.kubernetes.io/pod-index']"
    assert environment["ISRFLOW_NODE_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == index
    own = environment["ISRFLOW_SSL_KEYSTORE_LOCATION"]["value"].replace("$(POD_NAME)", f"{GATEWAY}-100")
    assert own == OF_POD["ISRFLOW_SSL_KEYSTORE_LOCATION"]
    assert list(environment).index("POD_NAME") < list(environment).index("ISRFLOW_SSL_KEYSTORE_LOCATION")
    for voter in voters:
        service = one("Service.v1", voter.host)["spec"]
        assert service["selector"] == {"statefulset.kubernetes.io/pod-name": f"{GATEWAY}-{voter.voter}"}
        assert [entry["port"] for entry in service["ports"]] == [voter.port]
        # Brokers and the other gateway connect before this one leads or follows.
        assert service["publishNotReadyAddresses"] is True
    assert kraft_settings.identity_of(GATEWAY_SETTINGS).place == ("0.0.0.0", 9093)


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_a_machine_that_dies_takes_one_pod_of_two(name: str, pod: Document) -> None:
    (rule,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert one("StatefulSet", name)["spec"]["replicas"] == 2
    assert one("PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1


def test_only_brokers_and_gateways_may_connect_to_a_gateway() -> None:
    brokers, metrics = one("NetworkPolicy", GATEWAY)["spec"]["ingress"]
    assert [entry["port"] for entry in brokers["ports"]] == [9093]
    assert [entry["port"] for entry in metrics["ports"]] == [GATEWAY_SETTINGS.metrics_port]
    assert all(one["from"] for one in (brokers, metrics))
    assert GATEWAY_SETTINGS.security_protocol == "SSL"


def test_profiles_and_manifests_differ_in_places_alone() -> None:
    """Values that an operator learns from one of them hold for the other."""

    def differing(given: object, other: object) -> set[str]:
        values, others = msgspec.to_builtins(given), msgspec.to_builtins(other)
        return {name for name, value in values.items() if value != others[name]}

    reachable = {"metrics.host", "metrics.ssl.keystore.location", "metrics.token.file"}
    places = {"bus", "kafka.client.config", *reachable}
    assert differing(SETTINGS, load(PROFILES / "production.toml")) == places
    of_gateway = {"controller.quorum.voters", "ssl.keystore.location", "ssl.truststore.location"}
    assert differing(GATEWAY_SETTINGS, kraft_settings.load(PROFILES / "gateway.toml")) == places | of_gateway


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_a_pod_is_hardened_and_asks_whether_it_works(name: str, pod: Document) -> None:
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
    # A gateway is named its file, because ISRFLOW_CONF would be every command's in its pod.
    ready, file = ("/standbyz", []) if name == ENGINE else ("/readyz", container(pod)["args"][-1:])
    asked = {probe: ready if probe == "readinessProbe" else "/healthz" for probe in probes}
    assert probes == {probe: [*health[:-1], path, *file] for probe, path in asked.items()}
    assert "readinessProbe" in probes, "a rollout waits until the pod could take over"


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_selectors_of_pods_find_these_and_their_port(name: str, pod: Document) -> None:
    settings: MetricsSettings = SETTINGS if name == ENGINE else GATEWAY_SETTINGS
    labels, ports = pod["metadata"]["labels"], {entry["name"]: entry for entry in container(pod)["ports"]}
    port = ports["metrics"]
    assert port["containerPort"] == settings.metrics_port
    of_pods = [one(kind, name)["spec"] for kind in ("Service.v1", "NetworkPolicy", "PodDisruptionBudget")]
    service, policy, budget = of_pods
    monitor = one("PodMonitor")["spec"]
    selectors = [monitor["selector"]["matchLabels"], service["selector"], policy["podSelector"]["matchLabels"]]
    selectors.append(budget["selector"]["matchLabels"])
    assert all(selector.items() <= labels.items() for selector in selectors)
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == (port["name"], "https")
    assert endpoint["authorization"]["credentials"]["key"] == Path(settings.metrics_token_file).name
    (secrets,) = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    # Gateways show the same token and a certificate of the same name, and have no other secret of the engines.
    ours = endpoint["authorization"]["credentials"]["name"]
    assert ours == endpoint["tlsConfig"]["ca"]["secret"]["name"] == "isrflow-secrets"
    assert secrets == ("isrflow-secrets" if name == ENGINE else "isrflow-gateway-secrets")
    # Beyond loopback a process starts only with a certificate and a token.
    assert settings.metrics_ssl_keystore_location
    served = {entry["containerPort"] for entry in ports.values()}
    assert {entry["targetPort"] for entry in service["ports"]} == served
    assert {entry["port"] for rule in policy["ingress"] for entry in rule["ports"]} == served
    bus_port = int(SETTINGS.bus_name.rpartition(":")[2].partition("/")[0])
    assert bus_port in [entry["port"] for entry in policy["egress"][0]["ports"]]


def test_an_image_is_named_once_and_its_tag_is_given_by_whoever_built_it() -> None:
    (renamed,) = read(KUBERNETES / "base" / "kustomization.yaml")["images"]
    assert renamed["newTag"] == "VERSION-COMMIT"
    for _, pod in PODS:
        spec = pod["spec"]
        assert {one["image"] for one in (*spec["containers"], *spec.get("initContainers", []))} == {renamed["name"]}
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
