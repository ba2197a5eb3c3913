"""The errors with which a job ends by itself."""


class JobError(Exception):
    """The job ended because it could not continue. The message says why."""


class SupersededError(JobError):
    """The job ended because another one took over."""
