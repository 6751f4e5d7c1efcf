"""`python -m opcheck`."""

from opcheck.cli import entry

if __name__ == "__main__":
    entry()
