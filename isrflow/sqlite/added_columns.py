"""The columns that older files of the embedded bus lack; the first process that writes to such a file adds them."""

import sqlite3

ENTERED, CRC = "entered_ms", "crc"
_ADDED = frozenset({("events", ENTERED), ("events", CRC), ("decisions", CRC), ("pages", CRC)})
_THERE = "SELECT tables.name, found.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS found"


class AddedColumns:
    """The added columns that an open file has.

    Columns are never removed, so a file that has all of them is checked only once. A file that lacks some is checked
    each time, because a writer may add them while it is read.
    """

    def __init__(self) -> None:
        self._whole = False

    def missing(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        """Return the columns that the file lacks, each with its table."""
        if self._whole:
            return []
        missing = _ADDED.difference(connection.execute(_THERE))
        self._whole = not missing
        return sorted(missing)

    def add(self, connection: sqlite3.Connection) -> None:
        """Add the missing columns. Call it in a write transaction, because another process may add them too."""
        for table, column in self.missing(connection):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")

    def of(self, connection: sqlite3.Connection, table: str, column: str) -> str:
        """Return the expression that selects a column: NULL if the table lacks it."""
        return "NULL" if (table, column) in self.missing(connection) else column
