"""What the axes of a tensor are called."""

from __future__ import annotations

from opcheck.run.roles import Run


def axis_names(tensor: str, shape: tuple[int, ...], run: Run) -> tuple[str, ...]:
    """Return the dimension names of a tensor: a gradient's are its input's, an output's those of an input of its shape.

    Empty where they are not known.
    """
    known = run.axes.get(tensor.removeprefix("grad "))
    if known is not None and len(known) == len(shape):
        return known
    for name, axes in run.axes.items():
        gradient = run.gradients.get(f"grad {name}")
        if gradient is not None and tuple(gradient.shape) == shape:
            return axes
    return ()
