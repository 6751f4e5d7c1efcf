"""One file, one format: an `AuditReport` in, text out."""
