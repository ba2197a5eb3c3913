"""What ends a gateway of either kind, because it must not guess."""


class UnknownFormatError(Exception):
    """This version does not know a decision's kind, or the format in which records are to be written."""
