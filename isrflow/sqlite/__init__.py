"""The part of an embedded bus that the engine and users' programs share: its file, and the two logs in it."""
