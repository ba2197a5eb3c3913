"""What ends a gateway of either kind, because it must not guess."""


class UnknownFormatError(Exception):
    """The decisions are of a kind, or are to be written in a format, that this version does not know."""
