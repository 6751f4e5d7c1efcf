"""From a failing case to a script that shows the failure alone: shrink, capture, write, and see it fail."""
