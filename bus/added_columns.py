"""The columns of the embedded bus that files of before lack: the first process that writes to one adds them."""

import sqlite3

ENTERED, CRC = "entered_ms", "crc"
_ADDED = frozenset({("events", ENTERED), ("events", CRC), ("decisions", CRC), ("pages", CRC)})
_THERE = "SELECT tables.name, found.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS found"


class AddedColumns:
    """Know which of the columns an open file has.

    No column ever goes, so a file that has them all is asked once. One that lacks some is asked each time, because a
    writer may add them while it is read.
    """

    def __init__(self) -> None:
        self._whole = False

    def missing(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        """Name the columns that the file lacks, each with its table."""
        if self._whole:
            return []
        missing = _ADDED.difference(connection.execute(_THERE))
        self._whole = not missing
        return sorted(missing)

    def add(self, connection: sqlite3.Connection) -> None:
        """Add what is missing; in a write transaction, because another process may do so too."""
        for table, column in self.missing(connection):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")

    def of(self, connection: sqlite3.Connection, table: str, column: str) -> str:
        """Give what to select for a column: NULL where the table lacks it."""
        return "NULL" if (table, column) in self.missing(connection) else column
