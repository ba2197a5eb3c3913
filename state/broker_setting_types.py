"""The types of brokers' settings (``KafkaConfig`` of Kafka 3.9 to 4.4, and the settings that only live brokers have).

Where releases differ, the type is that of Kafka 4.1. ``tests/real_kafka`` compares the table with Kafka's own.
"""

import re

from state.policy import NAMES

# DescribeConfigsResponse.ConfigType
UNKNOWN, BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(10)
_NAMES = {
    BOOLEAN: """
        alter.config.policy.kraft.compatibility.enable auto.create.topics.enable auto.include.jmx.reporter
        auto.leader.rebalance.enable broker.id.generation.enable controlled.shutdown.enable
        controller.quorum.auto.join.enable delete.topic.enable eligible.leader.replicas.enable
        errors.deadletterqueue.auto.create.topics.enable follower.fetch.last.tiered.offset.enable
        group.consumer.assignor.offload.enable group.coordinator.new.enable group.share.assignor.offload.enable
        group.share.enable group.streams.assignor.offload.enable log.cleaner.enable log.message.downconversion.enable
        log.preallocate remote.log.storage.system.enable sasl.oauthbearer.allow.unverified.audience
        sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.claim.jti.include ssl.allow.dn.changes
        ssl.allow.san.changes transaction.partition.verification.enable transaction.two.phase.commit.enable
        unclean.leader.election.enable unstable.api.versions.enable unstable.feature.versions.enable
        zookeeper.metadata.migration.enable zookeeper.set.acl zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
        zookeeper.ssl.ocsp.enable
    """,
    STRING: """
        advertised.listeners authorizer.class.name broker.rack compression.type control.plane.listener.name
        controller.listener.names early.start.listeners errors.deadletterqueue.topic.name.prefix
        group.consumer.migration.policy group.share.dlq.manager.class.name group.share.persister.class.name
        inter.broker.listener.name inter.broker.protocol.version listener.security.protocol.map listeners log.dir
        log.dirs log.message.format.version log.message.timestamp.type max.connections.per.ip.overrides
        metadata.log.dir metrics.recording.level password.encoder.cipher.algorithm
        password.encoder.keyfactory.algorithm remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix replica.selector.class
        sasl.kerberos.kinit.cmd sasl.kerberos.service.name sasl.mechanism.controller.protocol
        sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.template.file
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name
        sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url security.inter.broker.protocol
        security.providers ssl.client.auth ssl.endpoint.identification.algorithm ssl.keymanager.algorithm
        ssl.keystore.location ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type
        zookeeper.clientCnxnSocket zookeeper.connect zookeeper.ssl.endpoint.identification.algorithm
        zookeeper.ssl.keystore.location zookeeper.ssl.keystore.type zookeeper.ssl.protocol
        zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
    """,
    INT: """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
        background.threads broker.heartbeat.interval.ms broker.id broker.session.timeout.ms compression.gzip.level
        compression.lz4.level compression.zstd.level connection.failed.authentication.delay.ms
        controlled.shutdown.max.retries controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quota.window.num
        controller.quota.window.size.seconds controller.socket.timeout.ms default.replication.factor
        delete.records.purgatory.purge.interval.requests fetch.max.bytes fetch.purgatory.purge.interval.requests
        group.consumer.assignment.interval.ms group.consumer.heartbeat.interval.ms
        group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms group.consumer.max.size group.consumer.min.assignment.interval.ms
        group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
        group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms group.coordinator.append.linger.ms
        group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes group.coordinator.threads
        group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
        group.share.assignment.interval.ms group.share.delivery.count.limit group.share.heartbeat.interval.ms
        group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
        group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
        group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
        group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.max.warmup.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
        group.streams.min.task.offset.interval.ms group.streams.num.standby.replicas group.streams.num.warmup.replicas
        group.streams.session.timeout.ms group.streams.task.offset.interval.ms initial.broker.registration.timeout.ms
        internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
        internal.metadata.max.fetch.size.in.bytes kafka.metrics.polling.interval.secs
        leader.imbalance.per.broker.percentage log.cleaner.io.buffer.size log.cleaner.threads
        log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes
        log.index.size.max.bytes log.retention.hours log.retention.minutes log.roll.hours log.roll.jitter.hours
        log.segment.bytes max.connection.creation.rate max.connections max.connections.per.ip
        max.decompressed.message.bytes max.incremental.fetch.session.cache.slots max.request.partition.size.limit
        message.max.bytes metadata.log.segment.bytes metadata.log.segment.min.bytes metadata.max.idle.interval.ms
        metrics.num.samples min.insync.replicas node.id num.io.threads num.network.threads num.partitions
        num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
        offset.metadata.max.bytes offsets.commit.timeout.ms offsets.load.buffer.size offsets.retention.minutes
        offsets.topic.compression.codec offsets.topic.num.partitions offsets.topic.segment.bytes
        password.encoder.iterations password.encoder.key.length producer.id.expiration.check.interval.ms
        producer.id.expiration.ms producer.purgatory.purge.interval.requests queued.max.requests quota.window.num
        quota.window.size.seconds remote.fetch.max.wait.ms remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
        remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
        remote.log.reader.max.pending.tasks remote.log.reader.threads replica.fetch.backoff.ms replica.fetch.max.bytes
        replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
        replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
        replication.quota.window.size.seconds request.timeout.ms reserved.broker.max.id sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.clock.skew.seconds sasl.server.max.receive.size
        share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
        share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
        share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.max.fetch.records share.fetch.purgatory.purge.interval.requests socket.listen.backlog.size
        socket.receive.buffer.bytes socket.request.max.bytes socket.send.buffer.bytes telemetry.max.bytes
        transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
        transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
        transaction.state.log.min.isr transaction.state.log.num.partitions transaction.state.log.segment.bytes
        transactional.id.expiration.ms zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
        zookeeper.metadata.migration.min.batch.size zookeeper.session.timeout.ms
    """,
    SHORT: """
        group.share.max.groups offsets.commit.required.acks offsets.topic.replication.factor
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.replication.factor transaction.state.log.replication.factor
    """,
    LONG: """
        connections.max.idle.ms connections.max.reauth.ms controlled.shutdown.retry.backoff.ms
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
        follower.replication.throttled.rate group.streams.acceptable.recovery.lag internal.metadata.delete.delay.millis
        leader.imbalance.check.interval.seconds leader.replication.throttled.rate log.cleaner.backoff.ms
        log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms
        log.cleaner.min.compaction.lag.ms log.dir.failure.timeout.ms log.flush.interval.messages log.flush.interval.ms
        log.flush.scheduler.interval.ms log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
        log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms
        log.remote.copy.lag.bytes log.remote.copy.lag.ms log.retention.bytes log.retention.check.interval.ms
        log.retention.ms log.roll.jitter.ms log.roll.ms log.segment.delete.delay.ms
        metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.ms
        metadata.max.retention.bytes metadata.max.retention.ms metrics.sample.window.ms
        offsets.retention.check.interval.ms queued.max.request.bytes remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms replica.alter.log.dirs.io.max.bytes.per.second
        replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms sasl.kerberos.min.time.before.relogin
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        unclean.leader.election.interval.ms
    """,
    DOUBLE: """
        log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second log.cleaner.min.cleanable.ratio
        remote.log.manager.task.retry.jitter sasl.kerberos.ticket.renew.jitter
        sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    """,
    LIST: """
        config.providers controller.quorum.bootstrap.servers controller.quorum.voters cordoned.log.dirs
        group.consumer.assignors group.coordinator.rebalance.protocols group.share.assignors group.streams.assignors
        group.streams.rack.aware.assignment.tags kafka.metrics.reporters log.cleanup.policy metric.reporters
        process.roles sasl.enabled.mechanisms sasl.kerberos.principal.to.local.rules sasl.oauthbearer.expected.audience
        ssl.cipher.suites ssl.enabled.protocols zookeeper.ssl.cipher.suites zookeeper.ssl.enabled.protocols
    """,
    CLASS: """
        alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name
        group.streams.topology.description.plugin.class principal.builder.class sasl.client.callback.handler.class
        sasl.login.callback.handler.class sasl.login.class sasl.oauthbearer.jwt.retriever.class
        sasl.oauthbearer.jwt.validator.class sasl.server.callback.handler.class ssl.engine.factory.class
    """,
    PASSWORD: """
        delegation.token.master.key delegation.token.secret.key password.encoder.old.secret password.encoder.secret
        sasl.jaas.config sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.client.credentials.client.secret ssl.key.password ssl.keystore.certificate.chain
        ssl.keystore.key ssl.keystore.password ssl.truststore.certificates ssl.truststore.password
        zookeeper.ssl.keystore.password zookeeper.ssl.truststore.password
    """,
}
_TYPES = {name: config_type for config_type, names in _NAMES.items() for name in names.split()}
# A listener may have settings of its own, and for some of them each of its SASL mechanisms may.
_OF_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


def broker_setting_type(name: str) -> int:
    """Return the type of a broker's setting or of a listener's; ``UNKNOWN`` if Kafka does not know it."""
    found = _OF_LISTENER.fullmatch(name)
    if name in _TYPES or found is None:
        return _TYPES.get(name, UNKNOWN)
    bare = next((one for one in _OF_MECHANISM if found[1].endswith(one)), found[1])
    return _TYPES.get(bare, UNKNOWN)


def is_secret(name: str) -> bool:
    """Return whether a broker's setting is hidden: a password, or one that neither Kafka nor the engine knows.

    An unknown setting may be a plugin's password (``KafkaConfig.maybeSensitive``).
    """
    return name not in NAMES and broker_setting_type(name) in (PASSWORD, UNKNOWN)
