"""Load, store and update memory: the one place that an interpreted program's addresses pass through.

`observing` hooks that place. The interpreter's C code knows NumPy's own types only, so bf16 and fp8 travel as unsigned
integers of the same width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime import interpreter

from opcheck.backends.interpreter.dtypes import CUSTOM, Array, bits, convert, storage
from opcheck.backends.interpreter.origins import ORIGIN
from opcheck.backends.interpreter.wraps import WRAP, Wrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One memory operation of one program, before it happens.

    Attributes:
        kind: What is about to happen; an `atomic` reads and writes.
        pointers: Byte addresses, `[*block]` of uint64.
        mask: The lanes that take part, `[*block]` of bool.
        itemsize: Bytes per lane.
        origin: The argument that the pointers were computed from: the addresses of its storage and of its first
            element. None where that is not known.
        values: What a store writes, `[*block]`; None for the others.
        undefined: Whether the lanes that do not take part were given no value.
        ordering: Whether it is an atomic that orders the accesses around it, as all but relaxed ones do.
        wrap: Where the pointers should lead, if integers that they were computed from have wrapped.
    """

    kind: Literal["load", "store", "atomic"]
    pointers: Array
    mask: Array
    itemsize: int
    origin: tuple[int, int] | None = None
    values: Array | None = None
    undefined: bool = False
    ordering: bool = False
    wrap: Wrap | None = None


#: Sees an access and returns the mask of the lanes that may go on: `access.mask`, or less of it.
Observer = Callable[[Access], Array]

#: Added here: the native code knows no bf16, and raises where an fp16 sum overflows instead of giving Inf.
_NARROW = CUSTOM | {np.dtype(np.float16)}

#: Who looks; the repair puts `opcheck.backends.interpreter.guard` here.
_observer: Observer | None = None

#: What every byte of a masked lane without `other` holds, None for 0.
_masked: int | None = None


@contextmanager
def observing(observer: Observer | None) -> Iterator[None]:
    """Show every access inside the block to `observer`, or to nobody; the innermost block's observer alone is asked."""
    global _observer
    previous, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = previous


@contextmanager
def masked_lanes(byte: int) -> Iterator[None]:
    """Have loads inside the block fill their masked lanes with one byte where the kernel gives no `other`."""
    global _masked
    previous, _masked = _masked, byte
    try:
        yield
    finally:
        _masked = previous


def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, cache_policy: Any, is_volatile: Any) -> Any:
    """Load the lanes of `mask`; the others are `other`, or 0 where it is None, as an NVIDIA GPU leaves them."""
    element = ptrs.get_element_ty()
    dtype = interpreter._get_np_dtype(element)
    carried = storage(dtype)
    rest = _rest(ptrs.data.shape, carried) if other is None else _carried(other.data)
    lanes = mask.data
    if _observer is not None:
        lanes = _observer(
            Access(
                kind="load", pointers=ptrs.data, mask=lanes, itemsize=dtype.itemsize, origin=ptrs.attr.get(ORIGIN),
                undefined=other is None, wrap=ptrs.attr.get(WRAP),
            )
        )  # fmt: skip
    return interpreter.TensorHandle(native.load(ptrs.data, lanes, rest, carried).view(dtype), element)


def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, cache_policy: Any) -> Any:
    """Store the lanes of `mask`."""
    data = value.data
    lanes = mask.data
    if _observer is not None:
        lanes = _observer(
            Access(
                kind="store", pointers=ptrs.data, mask=lanes, itemsize=data.dtype.itemsize,
                origin=ptrs.attr.get(ORIGIN), values=data, wrap=ptrs.attr.get(WRAP),
            )
        )  # fmt: skip
    return native.store(ptrs.data, _carried(data), lanes)


def create_atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
    """Read, combine and write the lanes of `mask` one after the other; returns what was there before.

    Raises:
        ValueError: The operation or the memory semantic is not one that the interpreter has.
    """
    if operation not in self.ir_rmw_op_to_interpreter_rmw_op:
        raise ValueError(f"unsupported rmwOp {operation}")
    order = _memory_order(self, sem)
    data, dtype = val.data, val.data.dtype
    lanes = _admitted(ptr, mask.data, dtype.itemsize, sem)
    native_operation = self.ir_rmw_op_to_interpreter_rmw_op[operation]
    if dtype in _NARROW and native_operation == native.RMW_OP.FADD:
        before = _add_in_turn(ptr.data, data, lanes)
    else:
        before = native.atomic_rmw(native_operation, ptr.data, _carried(data), lanes, order).view(dtype)
    return interpreter.TensorHandle(before, val.dtype.scalar)


def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
    """Store `val` where memory equals `cmp`; returns what was there before.

    Raises:
        ValueError: The memory semantic is not one that the interpreter has.
    """
    order = _memory_order(self, sem)
    lanes = _admitted(ptr, np.ones(ptr.data.shape, np.bool_), cmp.data.dtype.itemsize, sem)
    if not lanes.all():
        return interpreter.TensorHandle(np.zeros_like(cmp.data), cmp.dtype.scalar)
    before = native.atomic_cas(ptr.data, _carried(cmp.data), _carried(val.data), order)
    return interpreter.TensorHandle(before.view(cmp.data.dtype), cmp.dtype.scalar)


def _admitted(ptr: Any, mask: Array, itemsize: int, sem: Any) -> Array:
    """Show an atomic to the observer."""
    if _observer is None:
        return mask
    return _observer(
        Access(
            kind="atomic", pointers=ptr.data, mask=mask, itemsize=itemsize, origin=ptr.attr.get(ORIGIN),
            ordering=sem != ir.MEM_SEMANTIC.RELAXED, wrap=ptr.attr.get(WRAP),
        )
    )  # fmt: skip


def _rest(shape: tuple[int, ...], carried: np.dtype[Any]) -> Array:
    """Return what the masked lanes of a load without `other` hold."""
    if _masked is None:
        return np.zeros(shape, carried)
    if carried == np.bool_:
        return np.ones(shape, carried)
    return np.full(shape, np.frombuffer(bytes([_masked]) * carried.itemsize, carried)[0], carried)


def _carried(data: Array) -> Array:
    return data.view(storage(data.dtype))


def _memory_order(builder: Any, sem: Any) -> Any:
    if sem not in builder.ir_sem_to_interpreter_sem:
        raise ValueError(f"unsupported semantic {sem}")
    return builder.ir_sem_to_interpreter_sem[sem]


def _add_in_turn(pointers: Array, values: Array, mask: Array) -> Array:
    """Add lane by lane in the lanes' own dtype; lanes of one address take turns, each turn one vector operation."""
    addresses, addends = np.broadcast_to(pointers, values.shape).ravel(), values.ravel()
    carried = storage(values.dtype)
    before = np.zeros(addresses.shape, values.dtype)
    waiting = np.flatnonzero(np.broadcast_to(mask, values.shape))
    while waiting.size:
        _, first = np.unique(addresses[waiting], return_index=True)
        turn = waiting[first]
        everyone = np.ones(turn.shape, np.bool_)
        old = native.load(addresses[turn], everyone, np.zeros(turn.shape, carried), carried).view(values.dtype)
        before[turn] = old
        native.store(addresses[turn], bits(convert(old + addends[turn], values.dtype)), everyone)
        waiting = np.delete(waiting, first)
    return before.reshape(values.shape)
