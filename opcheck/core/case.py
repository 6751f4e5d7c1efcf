"""The case: one printable value from which every input of a run can be rebuilt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from opcheck.core.layouts import layouts_of
from opcheck.errors import BadCase

if TYPE_CHECKING:
    import torch

LEADING = "..."  # the dimension name that stands for any number of leading dimensions

_ID = re.compile(r"(?P<op>[^\[\]@]+)\[(?P<body>.*)\]@(?P<backend>[a-z0-9:]+)", re.DOTALL)
_SIZE = re.compile(r"[0-9]+")
_SEED = re.compile(r"-?[0-9]+")
_FORM = "op[dtype;dims;values;layout;variant;grads;seed]@backend"


class Dims(Mapping[str, int]):
    """Named sizes, ordered and hashable: `Dims(rows=3, cols=129)`. Leading dimensions are named `...0`, `...1`."""

    __slots__ = ("_items",)

    def __init__(self, *args: Any, **sizes: int) -> None:
        self._items: tuple[tuple[str, int], ...] = tuple(dict(*args, **sizes).items())

    def __getitem__(self, name: str) -> int:
        for key, size in self._items:
            if key == name:
                return size
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items))  # equality knows no order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    def __repr__(self) -> str:
        return f"Dims({', '.join(f'{name}={size}' for name, size in self._items)})"

    def with_size(self, name: str, size: int) -> Dims:
        """Return the same dimensions with one size changed."""
        return Dims({**self, name: size})

    @property
    def leading(self) -> tuple[int, ...]:
        """The sizes of the leading dimensions, outermost first."""
        return tuple(size for name, size in self._items if name.startswith(LEADING))


class Builder(Protocol):
    """What draws a case's inputs; the runner attaches one to the case before it calls `samples`."""

    def tensor(self, case: Case, dims: tuple[str, ...], name: str, dtype: str | None) -> torch.Tensor: ...
    def integers(self, case: Case, low: int, high: int, dims: tuple[str, ...], name: str) -> torch.Tensor: ...
    def offsets(self, case: Case, total: int, parts: int, name: str) -> torch.Tensor: ...
    def booleans(self, case: Case, dims: tuple[str, ...], name: str) -> torch.Tensor: ...
    def generator(self, case: Case) -> torch.Generator: ...
    def device(self) -> torch.device: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One point of an op's contract: strings and ints only, and `Case.parse(case.id) == case`.

    Attributes:
        op: Qualified name of the op, `"ns::name"`.
        dtype: Element type of the inputs, `"bfloat16"`, or one per input, `"x=bfloat16,weight=float32"`.
        dims: Sizes by dimension name.
        values: Family of values; empty is `"normal"`.
        layout: Memory layouts that differ from contiguous, `"x=transposed+grad:y=expanded"`.
        variant: Argument values that differ from the sample's, `"eps=1e-05"`.
        grads: Inputs that require a gradient, and after `>` outputs that are used, where it is not all of them:
            `"x+weight>out 1"`.
        seed: Seed of everything drawn.
        backend: Where the target runs, `"cpu"` (Triton interpreted) or `"cuda"`.
    """

    op: str
    dtype: str
    dims: Dims = field(default_factory=Dims)
    values: str = "normal"
    layout: str = ""
    variant: str = ""
    grads: str = ""
    seed: int = 0
    backend: str = "cpu"
    builder: Builder | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """The printable name: fixed positions, empty means default."""
        dims = ",".join(f"{name}={size}" for name, size in self.dims.items())
        body = (self.dtype, dims, self.values, self.layout, self.variant, self.grads, str(self.seed))
        return f"{self.op}[{';'.join(body)}]@{self.backend}"

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read an id back; the inverse of `id`.

        Raises:
            BadCase: The text is not of the form `op[dtype;dims;values;layout;variant;grads;seed]@backend`.
        """
        match = _ID.fullmatch(text.strip())
        if match is None:
            raise BadCase(f"case id {text!r} is not of the form {_FORM}")
        parts = match["body"].split(";")
        if len(parts) != 7:
            raise BadCase(f"case id {text!r} has {len(parts)} fields between the brackets; the form is {_FORM}")
        dtype, dims, values, layout, variant, grads, seed = parts
        sizes: dict[str, int] = {}
        for item in filter(None, dims.split(",")):
            name, _, size = item.partition("=")
            if not name or not _SIZE.fullmatch(size):
                raise BadCase(f"case id {text!r}: dimension {item!r} should read name=size, a size of 0 or more")
            if name in sizes:
                raise BadCase(f"case id {text!r}: dimension {name!r} is given twice")
            sizes[name] = int(size)
        if not _SEED.fullmatch(seed):
            raise BadCase(f"case id {text!r}: seed {seed!r} is not an integer")
        return cls(
            op=match["op"], dtype=dtype, dims=Dims(sizes), values=values or "normal", layout=layout,
            variant=variant, grads=grads, seed=int(seed), backend=match["backend"],
        )  # fmt: skip

    def dtype_of(self, name: str) -> str:
        """Return the element type of the input `name`: its own in a mixed case, the first one otherwise."""
        if "=" not in self.dtype:
            return self.dtype
        table = dict(item.split("=", 1) for item in self.dtype.split(","))
        return table.get(name) or next(iter(table.values()))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Every element type of the case, each once, in order."""
        return tuple(dict.fromkeys(item.rpartition("=")[2] for item in self.dtype.split(",")))

    @property
    def layouts(self) -> dict[str, str]:
        """The layout of each tensor that is not contiguous, `grad:out` for the upstream gradient of `out`."""
        return layouts_of(self.layout)

    @property
    def wanted(self) -> frozenset[str]:
        """The inputs that require a gradient; empty means all."""
        return frozenset(filter(None, self.grads.partition(">")[0].split("+")))

    @property
    def used(self) -> frozenset[str]:
        """The outputs that are used downstream, so that they have an upstream gradient; empty means all."""
        return frozenset(filter(None, self.grads.partition(">")[2].split("+")))

    def with_seed(self, seed: int) -> Case:
        """Return the sibling of this case with another seed."""
        return replace(self, seed=seed)

    def shape(self, *dims: str) -> tuple[int, ...]:
        """Return the sizes of named dimensions; `"..."` stands for all the leading ones.

        Raises:
            BadCase: The case has no such dimension.
        """
        sizes: list[int] = []
        for name in dims:
            if name == LEADING:
                sizes.extend(self.dims.leading)
            elif name in self.dims:
                sizes.append(self.dims[name])
            else:
                known = ", ".join(self.dims) or "none"
                raise BadCase(f"{self.op}: samples asks for dimension {name!r}; the contract's dims are {known}")
        return tuple(sizes)

    def tensor(self, *dims: str, name: str, dtype: str | None = None) -> torch.Tensor:
        """Draw the floating-point input `name` of shape `[*dims]`; values, layout and dtype are the case's.

        Args:
            dims: Names of dimensions of the contract; `"..."` stands for any leading ones.
            name: The parameter of the op that the tensor is for.
            dtype: Element type where it is not the case's, for example `"float32"`.
        """
        return self._drawer.tensor(self, dims, name, dtype)

    def integers(self, low: int, high: int, *dims: str, name: str) -> torch.Tensor:
        """Draw int64 values from the legal range `low <= value < high`, shape `[*dims]`."""
        return self._drawer.integers(self, low, high, dims, name)

    def offsets(self, total: int, parts: int, *, name: str) -> torch.Tensor:
        """Draw `[parts + 1]` int32 offsets from 0 to `total` that never decrease, as cu_seqlens are."""
        return self._drawer.offsets(self, total, parts, name)

    def booleans(self, *dims: str, name: str) -> torch.Tensor:
        """Draw a mask of shape `[*dims]`."""
        return self._drawer.booleans(self, dims, name)

    @property
    def generator(self) -> torch.Generator:
        """A generator seeded by the case, for values that no builder draws."""
        return self._drawer.generator(self)

    @property
    def device(self) -> torch.device:
        """The device on which this case's tensors live."""
        return self._drawer.device()

    @property
    def _drawer(self) -> Builder:
        if self.builder is None:
            raise BadCase(f"{self.id}: only a running audit can draw tensors; call opcheck.verify or opcheck.audit")
        return self.builder


class Sample:
    """The arguments of one call: `Sample(x, weight, eps=1e-6)`."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"Sample({len(self.args)} positional, {', '.join(self.kwargs) or 'no'} keywords)"
