"""``super.users`` in Kafka's form, principals separated by semicolons, and ``authorizer.class.name``."""

from typing import Annotated, Literal

from msgspec import Meta

SuperUsers = Annotated[
    str,
    Meta(
        max_length=65_536,
        pattern=r"^([A-Za-z][^:;\n]*:[^;\n]+(; *[A-Za-z][^:;\n]*:[^;\n]+)*;?)?\Z",
        description="principals such as User:alice;User:bob",
    ),
]


# Kafka's authorizer, which keeps ACLs in the metadata log; empty is none.
AuthorizerClass = Literal["", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"]


def super_users_of(text: str) -> frozenset[str]:
    """Parse the principals of ``super.users``."""
    return frozenset(one.strip() for one in text.split(";") if one.strip())
