"""The version of opcheck: pyproject.toml and every report read it from here."""

VERSION = "0.1.0"
