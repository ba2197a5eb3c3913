"""What every reader of settings raises."""


class SettingsError(Exception):
    """A setting is unknown or has a wrong value. The message names the setting and the expected value."""
