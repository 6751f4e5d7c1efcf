"""Give signs of life while something takes long that is not the op's fault: a compiler, on a busy machine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

LONGEST = 300.0  # seconds after which there are no more of them, so that what hangs is still found out
_EVERY = 5.0  # seconds


@contextlib.contextmanager
def breathing(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` now and then from another thread; nothing inside the block may call it."""
    done = threading.Event()

    def breathe() -> None:
        for _ in range(int(LONGEST / _EVERY)):
            if done.wait(_EVERY):
                return
            tell()

    thread = threading.Thread(target=breathe, daemon=True)
    tell()
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
