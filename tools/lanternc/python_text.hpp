// What every emitted Python module begins with, behind its docstring. @...@ is filled in.
#pragma once

namespace lantern::tool {

inline constexpr const char* python_imports = R"py(from __future__ import annotations

import base64 as _base64
import ctypes as _ctypes
import os as _os
import tempfile as _tempfile
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from typing import Any, NamedTuple
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class Error(RuntimeError):
    """A call failed: an index out of range, shapes that do not fit, no memory."""


def _load(code: bytes) -> _ctypes.CDLL:
    """The library in this file. It is loaded from memory where the system can, otherwise from a temporary file."""
    try:
        # The descriptor stays open: the loader knows libraries by their paths.
        descriptor = _os.memfd_create(__name__ + ".so")
        with open(descriptor, "wb", closefd=False) as file:
            file.write(code)
        return _ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except (AttributeError, OSError):
        with _tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(code)
            file.flush()
            return _ctypes.CDLL(file.name)


def _require(*features: str) -> None:
    """ImportError: the code is for another processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((set(line.split()) for line in file if line.startswith("flags")), None)
    except OSError:
        return
    missing = [] if flags is None else [f for f in features if f not in flags]
    if missing:
        raise ImportError(
            f"{__name__} was compiled for processors with {', '.join(missing)}, which this one lacks; "
            "compile it with lanternc --cpu=x86-64-v2 or another name of LLVM's"
        )


def _refuse(function: str, names: tuple, types: tuple, values: tuple):
    """Says which number has the wrong type."""
    for name, type_, value in zip(names, types, values):
        try:
            type_(value)
        except TypeError:
            raise TypeError(
                f"{function}: {name}: expected {'an integer' if 'int' in type_.__name__ or 'long' in type_.__name__ else 'a number'}, "
                f"got {type(value).__name__}"
            ) from None
    raise TypeError(f"{function}: the arguments have wrong types")


def _integer(function: str, name: str, value, bits: int) -> int:
    """Called where a value may not be an integer of so many bits."""
    try:
        value = value.__index__()
    except AttributeError:
        raise TypeError(f"{function}: {name}: expected an integer, got {type(value).__name__}") from None
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError(f"{function}: {name}: {value} does not fit {bits} bits")
    return value


_byref = _ctypes.byref
)py";

inline constexpr const char* python_arrays = R"py(
import numpy as _np

_ndarray, _empty = _np.ndarray, _np.empty
_address, _at = _ctypes.addressof, _ctypes.c_char.from_buffer


def _tensor(rank: int) -> type:
    """The structure of a tensor: its elements in C order, then its sizes."""
    sizes = [(f"d{r}", _ctypes.c_int64) for r in range(max(rank, 1))]

    class Tensor(_ctypes.Structure):
        _fields_ = [("data", _ctypes.c_void_p), *sizes]

        def shape(self) -> tuple:
            return tuple(getattr(self, f"d{r}") for r in range(rank))

    return Tensor


def _pointer(array) -> int:
    """The address of an array's elements; for those that can be written three times as fast as array.ctypes.data."""
    try:
        return _address(_at(array))
    except (TypeError, ValueError):  # read only, or empty
        return array.ctypes.data


def _array(function: str, name: str, value, dtype, rank: int):
    """The value as an array of this type in C order, without a copy where it is one."""
    array = _np.asarray(value)
    if array.dtype is not dtype:
        if array.size and not _np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(f"{function}: {name}: expected numbers of type {dtype}, got {array.dtype}")
        array = array.astype(dtype)
    if array.ndim != rank:
        raise ValueError(f"{function}: {name}: expected {rank} dimension{'s' * (rank != 1)}, got {array.ndim}")
    return array if array.flags.c_contiguous else _np.ascontiguousarray(array)


def _target(function: str, name: str, value, dtype, rank: int):
    """Memory of the caller's for a result; None where there is none."""
    if value is None:
        return None
    if not isinstance(value, _ndarray) or value.dtype is not dtype or value.ndim != rank:
        raise TypeError(f"{function}: {name}: expected an array of {rank} dimension{'s' * (rank != 1)} and type {dtype}")
    if not value.flags.c_contiguous or not value.flags.writeable:
        raise ValueError(f"{function}: {name}: expected an array in C order that can be written")
    return value


def _copied(tensor, dtype):
    """A result that lies in the library's memory, as an array of its own."""
    array = _empty(tensor.shape(), dtype)
    if array.nbytes:
        _ctypes.memmove(array.ctypes.data, tensor.data, array.nbytes)
    return array


def _remember(shapes: dict, key, value: tuple) -> None:
    """The next call with arguments of these shapes writes its results into arrays of these shapes."""
    if len(shapes) >= 64:
        shapes.clear()
    shapes[key] = value
)py";

inline constexpr const char* python_trees = R"py(

def _tree(function: str, name: str, value, dtypes: tuple, structure: type):
    """(left, right, values..., root) as the structure of a tree, and the arrays that it points to."""
    try:
        left, right, *columns, root = value
    except (TypeError, ValueError):
        columns = []
    if len(columns) != len(dtypes):
        raise TypeError(
            f"{function}: {name}: expected (left, right, {', '.join(['values'] * len(dtypes))}, root): the children of each node, "
            "-1 where there is none, the values of each node, and the number of the root"
        )
    arrays = [_array(function, name + ".left", left, _np.dtype(_np.int64), 1)]
    arrays += [_array(function, name + ".right", right, _np.dtype(_np.int64), 1)]
    arrays += [_array(function, name + ".values", c, t, 1) for c, t in zip(columns, dtypes)]
    root, n = int(root), len(arrays[0])
    if any(len(a) != n for a in arrays):
        raise ValueError(f"{function}: {name}: expected arrays of one length")
    children, numbers = _np.concatenate(arrays[:2]), _np.tile(_np.arange(n), 2)
    there = children != -1
    if not -1 <= root < n or _np.any(there & ((children < 0) | (children >= n))):
        raise ValueError(f"{function}: {name}: expected numbers of nodes from -1 to {n - 1}")
    if not (_np.all(children[there] > numbers[there]) or _np.all(children[there] < numbers[there])):
        raise ValueError(f"{function}: {name}: expected each node before its children, or each after them")
    return structure(*(a.ctypes.data for a in arrays), root), arrays
)py";

/// For modules of frameworks that differentiate.
inline constexpr const char* python_signatures = R"py(
import numpy as _np


class _Array:
    """The type of an argument or result: a NumPy type, and sizes, None where any will do."""

    def __init__(self, dtype: str, *sizes):
        self.dtype, self.sizes = _np.dtype(dtype), sizes
        self.floating = self.dtype.kind == "f"


class _Signature:
    """What a function takes and gives, and the arguments that its results have the shapes of, where that is known."""

    def __init__(self, name: str, names: tuple, parameters: tuple, results: tuple, like: tuple | None):
        self.name, self.names, self.parameters, self.results, self.like = name, names, parameters, results, like
        self.integers = {i for i, p in enumerate(parameters) if not p.sizes and p.dtype.kind == "i"}
        self.asks_for_shapes = like is None and any(None in r.sizes for r in results)

    def checked(self, arguments) -> tuple:
        """The arguments as arrays of their types. Raises: their number, type, rank or size is wrong."""
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.name}: expected {len(self.parameters)} arguments, got {len(arguments)}")
        return tuple([self._checked(n, p, a) for n, p, a in zip(self.names, self.parameters, arguments)])

    def require_shape(self, name: str, parameter: _Array, shape: tuple) -> None:
        if len(shape) == len(parameter.sizes) and all([s is None or s == n for s, n in zip(parameter.sizes, shape)]):
            return
        expected = ", ".join("?" if s is None else str(s) for s in parameter.sizes)
        raise ValueError(f"{self.name}: {name}: expected shape ({expected}), got {tuple(shape)}")

    def known_shapes(self, arguments) -> tuple:
        """Of the results, unless asks_for_shapes."""
        if self.like is not None:
            return tuple(arguments[i].shape for i in self.like)
        return tuple(r.sizes for r in self.results)
)py";

}  // namespace lantern::tool
