"""Tell in the log what a bus meets, where anybody has said how logs are written."""


def warn(message: str, **fields: object) -> None:
    """Write a line. Short commands do not wait for the import, and have said nothing of logs."""
    import structlog

    if structlog.is_configured():
        structlog.get_logger("isrflow.bus").warning(message, **fields)
