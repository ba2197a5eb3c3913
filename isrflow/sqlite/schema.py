"""The tables of an embedded bus. Columns that came later are in ``added_columns``."""

SCHEMA_VERSION = 1
# The version of a file that has blocks of decisions, which older versions would take for text.
BLOCKS_VERSION = 2
# The version of a file that has blocks of columns.
COLUMNS_VERSION = 3

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, patient INTEGER NOT NULL, raw BLOB NOT NULL,"
    " entered_ms INTEGER)",
    "CREATE TABLE IF NOT EXISTS decisions ("
    " seq INTEGER NOT NULL, idx INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (seq, idx)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS pages ("
    " shard INTEGER NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (shard, page))",
    "CREATE TABLE IF NOT EXISTS claims (controller_epoch INTEGER PRIMARY KEY,"
    " controller_id TEXT NOT NULL, seq INTEGER NOT NULL, time_ms INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
)
TABLES = {"events", "decisions", "pages", "claims", "marks"}
