"""What can go wrong with a bus."""


class BusError(Exception):
    """The bus cannot be reached or read. The message says which bus, and what to do."""


class NoBusError(BusError):
    """There is no bus at the given place, and the caller did not ask to make one."""


class EngineOnlyError(BusError):
    """A publisher sent an event that only the engine may make."""


class TrimmedError(BusError):
    """Retention has removed some of the entries that were asked for."""


class DamagedError(BusError):
    """The bus does not hold what was written. Nothing may be decided on it."""


class NoAnswerError(BusError):
    """The engine has not answered a request in time. The request stays published."""
