"""The part of an embedded bus that everybody shares: its file, and the two logs in it."""
