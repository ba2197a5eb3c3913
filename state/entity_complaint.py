"""The error of a change to a metadata entity."""


class ComplaintError(Exception):
    """A change that cannot be made, with Kafka's name of the error."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
