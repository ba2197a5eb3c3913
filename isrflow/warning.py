"""Log lines of the bus, written only in processes that have configured logging."""


def warn(message: str, **fields: object) -> None:
    """Log a warning. Short commands configure no logging, so they do not pay for the import."""
    import structlog

    if structlog.is_configured():
        structlog.get_logger("isrflow.bus").warning(message, **fields)
