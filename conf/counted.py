"""Numbers in sentences."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with the words for it: ``1 broker is fenced``, ``2 brokers are fenced``.

    Without ``many``, more than one have an s.
    """
    return f"{count} {one if count == 1 else many or f'{one}s'}"
