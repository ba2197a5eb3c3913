"""Why a broker's or gateway's process ends, in words."""


def why_of(error: BaseException) -> str:
    """Return what the error says that stopped everything, out of the exception groups around it. Name its file."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or repr(error)
