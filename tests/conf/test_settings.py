"""The settings: the source of each value, and the errors for wrong ones."""

from pathlib import Path

import pytest

from brokers.gateways.kraft.settings import Settings as GatewaySettings
from brokers.gateways.kraft.settings import load as load_gateway
from conf.cross_checks import GATEWAY_HEARTBEAT_MS
from conf.environment import OTHERS, variable_of
from conf.layers import SettingsError
from conf.loader import KEYS, from_sets, load, policy_text
from conf.settings import Settings
from isrflow.masking import masked
from state.policy import NAMES
from tests.support.settings_page import REFERENCE

PROFILES = REFERENCE.with_name("profiles")


def test_the_reference_file_holds_every_key_with_its_default() -> None:
    assert load(REFERENCE) == Settings()
    text = REFERENCE.read_text()
    assert [key for key in sorted(KEYS) if f"\n{key} = " not in text] == []


@pytest.mark.parametrize("name", ["laptop", "production", "spark-cluster"])
def test_the_profiles_load(name: str) -> None:
    assert load(PROFILES / f"{name}.toml") != Settings()


def test_there_are_three_profiles_of_engines_and_one_of_a_gateway() -> None:
    assert {path.stem for path in PROFILES.glob("*.toml")} == {"gateway", "laptop", "production", "spark-cluster"}
    assert load_gateway(PROFILES / "gateway.toml") != GatewaySettings()


@pytest.mark.parametrize("line", ['driver.memory = "1g\\n"', 'bus = "kafka://localhost:1\\n"'])
def test_a_value_must_not_end_in_a_newline(tmp_path: Path, line: str) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text(line)
    with pytest.raises(SettingsError, match="expected"):
        load(file)


@pytest.mark.parametrize(
    "place", ["", "/", "data/cp", "ab:", "file:/cp", "file:///a/cp/", "s3a://bucket/cp", "hdfs:/cp", "hdfs://h:1/a/cp"]
)
def test_a_checkpoint_may_be_any_path_and_any_uri_below_a_root(place: str) -> None:
    assert load(sets=[f"checkpoint.dir={place}"]).checkpoint_dir == place


def test_each_layer_overrides_the_one_below(tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text('shards = 8\nnum.partitions = 3\n"metrics.port" = 0\n[broker.session.timeout]\nms = 5000\n')
    settings = load(file, ["num.partitions=6", "unclean.leader.election.enable=true", "controller.id=a=b"])
    assert (settings.shards, settings.metrics_port, settings.pages) == (8, 0, 64)
    assert settings.policy.broker_session_timeout_ms == 5000
    assert settings.policy.num_partitions == 6
    assert settings.policy.unclean_leader_election_enable is True
    assert settings.controller_id == settings.controller_name == "a=b"


def test_the_environment_overrides_the_file_and_is_overridden_by_options(tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text('shards = 8\nbus = "sqlite:file.db"\npages = 2\n')
    environment = {
        "ISRFLOW_SHARDS": "4",
        "ISRFLOW_BUS": "environment.db",
        "ISRFLOW_BROKER_SESSION_TIMEOUT_MS": "5000",
        "ISRFLOW_METRICS_KAFKA_NAMES": "false",
        "ISRFLOW_PAGES": "",
        "ISRFLOW_CONF": "elsewhere.toml",
        "HOME": "/nowhere",
    }
    settings = load(file, ["bus=sqlite:option.db"], environment=environment)
    assert (settings.bus, settings.shards, settings.pages, settings.metrics_kafka_names) == (
        *("sqlite:option.db", 4, 2),
        False,
    )
    assert settings.policy.broker_session_timeout_ms == 5_000
    assert load(file, environment=environment).bus == "sqlite:environment.db"


def test_each_setting_has_a_variable_of_its_own() -> None:
    variables = {variable_of(key) for key in KEYS}
    assert len(variables) == len(KEYS)
    assert not variables & OTHERS


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("ISRFLOW_FOO", "4", "ISRFLOW_FOO: no setting has this variable; conf/reference.toml lists all settings"),
        ("ISRFLOW_SHARD", "4", "ISRFLOW_SHARD: no setting has this variable; did you mean ISRFLOW_SHARDS?"),
        ("ISRFLOW_CONFIG", "x", "did you mean ISRFLOW_CONF?"),
        ("ISRFLOW_ZZZZZZZZZZZZZZZZZ", "", "conf/reference.toml lists all settings"),
        ("ISRFLOW_SHARDS", "many", "ISRFLOW_SHARDS: shards: expected int, got 'many'"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(environment={variable: text})
    assert said in str(error.value)


def test_variables_that_kubernetes_sets_for_a_service_are_no_settings() -> None:
    of_a_service = {
        "ISRFLOW_SERVICE_HOST": "10.0.0.7",
        "ISRFLOW_SERVICE_PORT": "9464",
        "ISRFLOW_SERVICE_PORT_METRICS": "9464",
        "ISRFLOW_PORT": "tcp://10.0.0.7:9464",
        "ISRFLOW_PORT_9464_TCP": "tcp://10.0.0.7:9464",
        "ISRFLOW_PORT_9464_TCP_PROTO": "tcp",
        "ISRFLOW_UI_SVC_PORT_4040_TCP_ADDR": "10.0.0.7",
    }
    assert load(environment=of_a_service | {"ISRFLOW_METRICS_PORT": "7"}).metrics_port == 7
    with pytest.raises(SettingsError, match=r"ISRFLOW_METRIC_PORT: .* did you mean ISRFLOW_METRICS_PORT"):
        load(environment={"ISRFLOW_METRIC_PORT": "7"})


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url", [f"kafka://user:{SECRET}@host:9092", f"user:{SECRET}@host:9092", f"kafka://u:p@{SECRET}@h"]
)
def test_a_password_in_a_url_is_never_echoed(url: str, tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text(f'bus = "{url}"\n')
    for given in ({"path": file}, {"sets": [f"bus={url}"]}, {"sets": [url]}, {"environment": {"ISRFLOW_BUS": url}}):
        with pytest.raises(SettingsError) as error:
            load(**given)  # type: ignore[arg-type]
        assert SECRET not in str(error.value)


def test_a_password_in_a_message_is_masked() -> None:
    message = f"bus kafka://user:{SECRET}@a:1,b:2/x: no answer; see https://example.org/@page"
    assert SECRET not in masked(message)
    assert masked("no answer from a@b") == "no answer from a@b"


def test_settings_of_sparks_are_kept_under_their_own_names(tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text('spark.master = "spark://a:7077,b:7077"\nspark.ui.enabled = true\nspark.cores.max = 4\n')
    settings = load(file, ["spark.cores.max=8", "spark.executor.memory=2g"])
    assert settings.spark == {
        "spark.master": "spark://a:7077,b:7077",
        "spark.ui.enabled": "true",
        "spark.cores.max": "8",
        "spark.executor.memory": "2g",
    }
    assert load(file, ["spark.master="]).spark.get("spark.master") is None
    file.write_text("spark.jars = [1]\n")
    with pytest.raises(SettingsError, match=r"spark\.jars: expected text, a number, true or false, got \[1\]"):
        load(file)


def test_a_controller_without_a_name_gets_one() -> None:
    assert Settings().controller_name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("broker.session.timeout=1", "did you mean 'broker.session.timeout.ms'?"),
        ("zzz=1", "unknown setting 'zzz'; conf/reference.toml lists all settings"),
        ("shards=0", "shards: expected int >= 1, got '0'"),
        ("shards=many", "shards: expected int, got 'many'"),
        ("metrics.port=65536", "metrics.port: expected int <= 65535, got '65536'"),
        ("metrics.kafka_names=perhaps", "metrics.kafka_names: expected true or false, got 'perhaps'"),
        ("log.format=xml", "log.format: expected one of auto, json, console, got 'xml'"),
        (f"controller.id={'x' * 1_025}", "controller.id: expected a name of at most 1024 characters, got 'xxx"),
        ("checkpoint.dir=s3a://bucket", "checkpoint.dir: expected a path, or the URI of a directory below the root"),
        ("checkpoint.dir=hdfs://namenode:8020/", "got 'hdfs://namenode:8020/'"),
        ("checkpoint.dir=file:///", "such as hdfs://host/isrflow or s3a://bucket/isrflow"),
        ("driver.memory=lots", "driver.memory: expected a size such as 512m or 2g, got 'lots'"),
        ("bus=/data/bus.db", "bus: expected sqlite:PATH or kafka://host:port[,host:port][/prefix], got '/data/bus.db'"),
        ("bus=kafka://localhost", "bus: expected sqlite:PATH or kafka://host:port[,host:port][/prefix]"),
        ("spark.master=yarn", "spark.master: expected local, local[N] or spark://host:port[,host:port], got 'yarn'"),
        ("spark.master=local[0]", "spark.master: expected local, local[N] or spark://"),
        ("spark.driver.memory=2g", "spark.driver.memory: the engine sets it itself: set driver.memory"),
        ("spark.speculation=true", "spark.speculation: the engine sets it itself: two copies of a task"),
        ("spark.my setting=1", "spark.my setting: it is not the name of a Spark setting"),
        ("shards", "expected key=value"),
    ],
)
def test_a_wrong_setting_is_named(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(sets=[text])
    assert said in str(error.value)
    assert f"--set {text}" in str(error.value)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["watermark.interval.ms=600"], "expected watermark.interval.ms ≤ tick.idle.interval.ms"),
        (["broker.session.timeout.ms=500"], "expected tick.idle.interval.ms < broker.session.timeout.ms, because"),
        (["broker.heartbeat.interval.ms=9000"], "is 9000: expected broker.heartbeat.interval.ms < broker.session."),
        (
            ["controller.quorum.fetch.timeout.ms=400"],
            "controller.quorum.fetch.timeout.ms is 400: expected more than 400",
        ),
        (
            ["tick.idle.interval.ms=2000"],
            "tick.idle.interval.ms is 2000, and controller.quorum.fetch.timeout.ms is 2000: "
            "expected tick.idle.interval.ms < controller.quorum.fetch.timeout.ms, because a gateway's silence ends at",
        ),
        (["watermark.interval.ms=9007199254740992"], "watermark.interval.ms: expected int <= 5000"),
        (["tick.idle.interval.ms=8001"], "tick.idle.interval.ms: expected int <= 5000"),
        (["takeover.timeout.ms=9007199254740992"], "takeover.timeout.ms: expected int <= 86400000"),
        (
            ["controller.standby.timeout.ms=500"],
            "expected tick.idle.interval.ms < controller.standby.timeout.ms, because a standby hears",
        ),
        (["retention.events=0"], "retention.events: expected int >= 1000"),
    ],
)
def test_contradictory_settings_are_named(sets: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(sets=sets)
    assert said in str(error.value)


def test_sessions_may_be_short_if_brokers_have_their_own_heartbeat_interval() -> None:
    assert load(sets=["broker.session.timeout.ms=1000"]).policy.broker_session_timeout_ms == 1_000


def test_slow_ticks_need_no_standby_timeout() -> None:
    sets = ["tick.idle.interval.ms=5000", "controller.quorum.fetch.timeout.ms=5001"]
    assert load(sets=sets).controller_standby_timeout_ms == 3_000


def test_a_replay_takes_any_policy() -> None:
    sets = ["broker.session.timeout.ms=1", "controller.quorum.fetch.timeout.ms=1"]
    assert load(sets=sets, cross_check=False).policy.broker_session_timeout_ms == 1


def test_the_gateways_heartbeat_interval_is_the_one_that_is_checked() -> None:
    assert GatewaySettings().gateway_heartbeat_interval_ms == GATEWAY_HEARTBEAT_MS


def test_a_wrong_type_in_a_file_is_named_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    file.write_text('broker.session.timeout.ms = "9000"\n')
    with pytest.raises(SettingsError, match=r"isrflow.toml: broker.session.timeout.ms: expected int, got '9000'"):
        load(file)


def test_a_missing_file_and_one_that_is_not_toml_are_named(tmp_path: Path) -> None:
    file = tmp_path / "isrflow.toml"
    with pytest.raises(SettingsError, match=r"cannot read .*isrflow.toml: No such file"):
        load(file)
    file.write_text("shards 8\n")
    with pytest.raises(SettingsError, match=r"is not TOML: .*line 1"):
        load(file)


def test_only_the_rules_settings_travel_in_events() -> None:
    values = from_sets(["shards=4", "delete.topic.enable=false", "num.partitions=2"])
    assert policy_text(values) == {"delete.topic.enable": "false", "num.partitions": "2"}


def test_every_rule_setting_is_a_key() -> None:
    assert NAMES < KEYS


@pytest.mark.parametrize("text", ["", "User:a", "User:a;User:b", "User:a; User:CN=b,O=c;", "User:a:b"])
def test_super_users_are_principals(text: str) -> None:
    assert load(None, [f"super.users={text}"]).super_users == text


@pytest.mark.parametrize("text", ["alice", "User:", ":alice", "User:a,alice;bob", ";", "User:a;;User:b", "User:a\n;"])
def test_a_malformed_list_of_principals_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"super.users: expected principals such as User:alice;User:bob, got"):
        load(None, [f"super.users={text}"])
