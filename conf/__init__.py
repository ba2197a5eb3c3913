"""Settings: their names, defaults and sources."""

from pathlib import Path

REFERENCE = Path(__file__).with_name("reference.toml")
LOG4J2 = Path(__file__).with_name("log4j2.properties")
PROFILES = Path(__file__).with_name("profiles")
