"""The tables of an embedded bus. The engine has more (``bus.embedded``)."""

SCHEMA_VERSION = 4

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, patient INTEGER NOT NULL, raw BLOB NOT NULL,"
    " entered_ms INTEGER, crc INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS decisions ("
    " seq INTEGER NOT NULL, idx INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL,"
    " PRIMARY KEY (seq, idx)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS pages ("
    " shard INTEGER NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL,"
    " PRIMARY KEY (shard, page))",
    "CREATE TABLE IF NOT EXISTS claims (controller_epoch INTEGER PRIMARY KEY,"
    " controller_id TEXT NOT NULL, seq INTEGER NOT NULL, time_ms INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
)
TABLES = {"events", "decisions", "pages", "claims", "marks"}
