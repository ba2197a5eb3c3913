"""How a job ends when nobody stopped it."""


class JobError(Exception):
    """The job ended because it could not go on; the message says why."""


class SupersededError(JobError):
    """The job ended because another one took over."""
