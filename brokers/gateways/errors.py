"""What ends a gateway of either kind, because it must not guess."""


class UnsupportedLevelError(Exception):
    """The bus is at a level that this version does not support (``state.level``)."""


class UnknownDecisionError(Exception):
    """This version does not know a decision's kind."""
