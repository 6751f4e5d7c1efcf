"""The pure middle of opcheck: values in, values out; no files, no clock, no devices, no random numbers."""
