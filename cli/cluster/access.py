"""Access control in a cluster on this machine: the same settings for gateways and for brokers."""

from collections.abc import Iterable, Mapping

from brokers.launch.kafka.node import KafkaNode
from cli.cluster.certificates import CLIENT, SECURE_LISTENER
from conf.layers import as_text
from conf.settings import Settings

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# In a secure cluster without a file of settings, every user may use resources that have no ACL, and the holder of the
# client's certificate may do anything.
SECURE_SETTINGS = (
    f"authorizer.class.name={AUTHORIZER}",
    f"super.users=User:{CLIENT}",
    "allow.everyone.if.no.acl.found=true",
)


def secure_bootstrap(nodes: Iterable[KafkaNode]) -> str:
    """Return the addresses at which brokers ask clients for certificates; empty if there are none."""
    listeners = (one for node in nodes for one in node.spec.overrides.get("advertised.listeners", "").split(","))
    prefix = f"{SECURE_LISTENER}://"
    return ",".join(one.removeprefix(prefix) for one in listeners if one.startswith(prefix))


def access_of_gateways(given: Settings) -> dict[str, str]:
    """Return the settings of access control. They are the same for all gateways."""
    return {
        "super.users": given.super_users,
        "authorizer.class.name": given.authorizer_class_name,
        "allow.everyone.if.no.acl.found": as_text(given.allow_everyone_if_no_acl_found),
    }


def access_of_brokers(given: Mapping[str, str], nodes: Iterable[KafkaNode]) -> dict[str, str]:
    """Return the settings for brokers, made from those ``given`` to gateways; none without an authorizer.

    Each broker must be a super user for the others. So brokers that do not authenticate to each other get no settings
    either, because any client could pose as a broker.
    """
    brokers = list(nodes)
    listeners = {node.spec.overrides.get("inter.broker.listener.name") for node in brokers}
    if not given["authorizer.class.name"] or listeners != {SECURE_LISTENER}:
        return {}
    named = (given["super.users"].rstrip("; "), *(f"User:broker-{node.spec.node_id}" for node in brokers))
    return {**given, "super.users": ";".join(filter(None, named))}
