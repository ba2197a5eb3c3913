"""The buses as Spark reads them: one file a bus, all behind the contract in ``interface``."""
