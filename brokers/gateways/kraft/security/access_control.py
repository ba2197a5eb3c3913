"""Who may do what on a gateway: by ACLs, by ``super.users`` alone, or without any check."""

from pathlib import Path

import structlog

from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import MetadataImage, knows_networks_in_acls
from brokers.gateways.kraft.security.audit_log import AuditLog
from brokers.gateways.kraft.security.authorization import Caller, is_of_brokers, refused_to
from brokers.gateways.kraft.security.authorizer import DEFAULT_DENY, SUPER_USER, Action, Authorizer
from brokers.gateways.kraft.security.operations import (
    FREE,
    OF_CLUSTER,
    ON_CLUSTER,
    ON_SETTINGS,
    ON_TOPICS,
    on_cluster,
)
from brokers.gateways.kraft.security.permissions import Permitted, permitted
from brokers.gateways.kraft.security.token_key import TokenKey
from brokers.gateways.kraft.security.token_requests import is_of_own_token, refused_token_request
from brokers.gateways.kraft.settings import Settings
from conf.super_users import super_users_of
from state.acl import Operation

# What every principal may do where only super users may change anything.
_LOOKING = ("DESCRIBE", "DESCRIBE_CONFIGS")
logger = structlog.get_logger()


class AccessControl:
    """The judge of callers' requests. It writes its decisions into the audit log."""

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._given = settings.super_users
        self._super_users = super_users_of(settings.super_users)
        self._allows_if_no_acl = settings.allow_everyone_if_no_acl_found
        self.has_authorizer = bool(settings.authorizer_class_name)
        self.token_key = TokenKey(settings.delegation_token_secret_key_file)
        self.must_know_callers = self.has_authorizer or bool(self._super_users)
        self._audit = AuditLog(directory, settings.authorizer_log_level if self.must_know_callers else "off")
        # The authorizer of the newest ACLs that were asked about, and whether it knows networks.
        self._former: tuple[object, bool, Authorizer] | None = None

    @property
    def changes_by(self) -> str:
        """Who may change anything, for the log."""
        if self.has_authorizer:
            return f"whom ACLs allow it, and super users: {self._given or 'none'}"
        return self._given or "everybody, because neither super.users nor authorizer.class.name is set"

    def permitted(self, caller: Caller, request: Request, image: MetadataImage, *, is_clients: bool) -> Permitted:
        """Return what ``caller`` may do of a request. ``is_clients`` tells whether clients make it."""
        refusal = refused_token_request(request, is_token=caller.is_token)
        if refusal is not None:
            found = Permitted(None, [refusal], is_whole=True)
        elif self.has_authorizer:
            found = self._by_acls(caller, request, image)
        elif is_clients and self._super_users and not is_of_own_token(request):
            found = self._by_super_users(caller, request)
        else:
            return Permitted(request, [])
        if found.refused:
            logger.info(
                "not authorized", api=request.name, principal=caller.principal, host=caller.host, by=caller.connection
            )
        return found

    def _by_super_users(self, caller: Caller, request: Request) -> Permitted:
        refusal = refused_to(caller, request, self._super_users)
        verdict = SUPER_USER if caller.principal in self._super_users else None if refusal is None else DEFAULT_DENY
        if verdict is not None:
            name = request.name
            operation = ON_CLUSTER.get(name) or ON_TOPICS.get(name) or ON_SETTINGS.get(name, "ALTER")
            self._audit.tell(caller.principal, caller.host, name, on_cluster(operation), verdict)
        return Permitted(request, []) if refusal is None else Permitted(None, [refusal], is_whole=True)

    def _by_acls(self, caller: Caller, request: Request, image: MetadataImage) -> Permitted:
        if request.name in FREE or (caller.is_direct and caller.is_broker and is_of_brokers(request)):
            return Permitted(request, [])
        authorizer = self._authorizer(image)
        is_of_broker = ON_CLUSTER.get(request.name) == "CLUSTER_ACTION"

        def may(action: Action, *, is_quiet: bool = False) -> bool:
            verdict = authorizer.decide(caller.principal, caller.host, action)
            # The listener knows a broker by its principal. So a broker needs no entry, but an entry can shut it out.
            is_allowed = verdict.is_allowed or (is_of_broker and verdict.acl is None)
            is_news = not is_of_broker if is_allowed else not is_quiet
            if is_news:
                self._audit.tell(caller.principal, caller.host, request.name, action, verdict)
            return is_allowed

        return permitted(request, image, may)

    def operations_on_cluster(self, principal: str, host: str, image: MetadataImage) -> list[Operation]:
        """Return what a client may do on the cluster (KIP-430)."""
        if self.has_authorizer:
            authorizer = self._authorizer(image)
            return [one for one in OF_CLUSTER if authorizer.decide(principal, host, on_cluster(one)).is_allowed]
        is_free = not self._super_users or principal in self._super_users
        return [one for one in OF_CLUSTER if is_free or one in _LOOKING]

    def _authorizer(self, image: MetadataImage) -> Authorizer:
        former, knows_networks = self._former, knows_networks_in_acls(image)
        if former is None or former[0] is not image.acls or former[1] != knows_networks:
            made = Authorizer(
                image.acls.values(),
                self._super_users,
                allows_if_no_acl=self._allows_if_no_acl,
                knows_networks=knows_networks,
            )
            former = self._former = (image.acls, knows_networks, made)
        return former[2]

    def close(self) -> None:
        """Close the file of the audit log."""
        self._audit.close()
