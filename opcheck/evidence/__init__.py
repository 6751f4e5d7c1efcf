"""Evidence of earlier audits: where it lies, and whether it still stands. Imports no torch."""
