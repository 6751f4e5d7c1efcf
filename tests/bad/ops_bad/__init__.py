"""Ops of `2 * x`, each with one mistake of its author, and right ones among them; nothing else imports this package."""
