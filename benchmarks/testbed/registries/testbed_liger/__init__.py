"""Liger-Kernel 0.8.5: normalizations, activations, softmaxes, losses, rotary embedding, embedding."""
