"""What ends a gateway of either kind, because it must not guess."""


class UnknownDecisionError(Exception):
    """This version does not know a decision's kind."""
