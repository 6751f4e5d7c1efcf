"""Tests that need TRITON_INTERPRET=1 before Triton's import; `test_interpreter.py` runs them in its own process."""
