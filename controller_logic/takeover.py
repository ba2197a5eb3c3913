"""Begin a controller epoch (``KafkaController.onControllerFailover``)."""

from msgspec.structs import replace

from isrflow.controller_logic import balance
from isrflow.controller_logic.config import change_settings, text_of
from isrflow.controller_logic.draft import Draft
from isrflow.state.events import ControllerStarted
from isrflow.state.policy import NAMES, complaint_about
from isrflow.state.reason import Reason


def controller_started(draft: Draft, event: ControllerStarted) -> None:
    """Take the next controller epoch, and the settings that it decides by.

    Live brokers get a whole session from now on: nobody listened while no controller was there. A
    setting that cannot be is reported and left aside, and the epoch counts all the same.
    """
    if event.controller_epoch <= draft.controller_epoch:
        message = f"controller epoch {event.controller_epoch} is not newer than {draft.controller_epoch}"
        draft.reject("controller_epoch", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("STALE_CONTROLLER_EPOCH", message)
        return
    draft.controller_epoch = event.controller_epoch
    draft.controller_id = str(event.controller_id)
    for broker in draft.brokers.values():
        if broker.is_live:
            draft.put_broker(replace(broker, last_contact_ms=draft.now))
    given = {key: value for key, value in text_of(event.settings or {}).items() if value is not None and key in NAMES}
    complaints = {key: complaint for key, value in given.items() if (complaint := complaint_about(key, value))}
    settings = {key: value for key, value in given.items() if key not in complaints}
    for key, complaint in sorted(complaints.items())[:1]:
        draft.reject(f"settings.{key}", complaint, Reason.MALFORMED)

    def set_settings() -> None:
        draft.settings = settings

    change_settings(draft, set_settings)
    balance.begin_anew(draft)
    draft.answer_if_asked()
