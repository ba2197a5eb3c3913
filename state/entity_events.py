"""The request to change a metadata entity."""

from state.entity import EntityType, Names
from state.event import AdminEvent
from state.limits import Config


class AlterEntity(AdminEvent, frozen=True, kw_only=True, tag="alter_entity"):
    """An admin sets or removes values of a metadata entity, all or none."""

    entity_type: EntityType
    # What names it, part by part. A null name is the default of its kind.
    names: Names
    # A null value removes the one in place.
    values: Config
    validate_only: bool = False


ENTITY_EVENTS = (AlterEntity,)
