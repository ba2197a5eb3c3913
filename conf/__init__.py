"""Settings: their names, defaults and sources."""

from pathlib import Path

LOG4J2 = Path(__file__).with_name("log4j2.properties")
