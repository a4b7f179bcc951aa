// What every module of --emit=torch has behind the wrappers of its functions: operators; how one is called on the CPU, or on a
// GPU; their rules for derivatives.
#pragma once

namespace lantern::tool {

inline constexpr const char* torch_operators = R"py(

import torch as _torch

if not hasattr(_torch.library, "custom_op"):
    raise ImportError(f"{__name__} needs PyTorch 2.4 or later, this is {_torch.__version__}")


class _Operator(_Signature):
    """A function of the library as an operator of PyTorch's. Floating numbers are tensors of no dimension there, because
    derivatives are taken by them; other numbers are Python's."""

    def __init__(self, name: str, *signature):
        super().__init__(name, *signature)
        self.known = {}
        for array in self.parameters + self.results:
            array.type = getattr(_torch, "bool" if array.dtype.kind == "b" else array.dtype.name)
            array.is_number = not array.sizes and not array.floating
        self.is_tensor = tuple(not p.is_number for p in self.parameters)

    def schema(self) -> str:
        kinds = {"b": "bool", "i": "SymInt"}
        parameters = ", ".join(f"{kinds[p.dtype.kind] if p.is_number else 'Tensor'} x{i}" for i, p in enumerate(self.parameters))
        results = ", ".join("Tensor" for _ in self.results)
        return f"({parameters}) -> " + (results if len(self.results) == 1 else f"({results})")

    def _checked(self, name: str, parameter: _Array, value):
        if parameter.is_number:
            if isinstance(value, (int, _torch.SymInt)):
                return value
            if isinstance(value, _torch.Tensor) and not value.dtype.is_floating_point:
                return value.item()
            raise TypeError(f"{self.name}: {name}: expected an integer, got {type(value).__name__}")
        if not isinstance(value, _torch.Tensor):
            try:
                value = _torch.as_tensor(value, dtype=parameter.type if isinstance(value, (int, float)) else None)
            except (TypeError, ValueError, RuntimeError):
                raise TypeError(f"{self.name}: {name}: expected a tensor or a number, got {type(value).__name__}") from None
        if value.device.type not in (_device_type, "meta") and (parameter.sizes or value.device.type != "cpu"):
            raise TypeError(f"{self.name}: {name}: expected a tensor on {_place}, got one on {value.device}")
        if value.dtype != parameter.type:
            if not _torch.can_cast(value.dtype, parameter.type):
                raise TypeError(f"{self.name}: {name}: expected numbers of type {parameter.dtype}, got {value.dtype}")
            value = value.to(parameter.type)
        self.require_shape(name, parameter, value.shape)
        return value

    def fake(self, *arguments):
        """Tensors without elements: what a program is traced with."""
        shapes = self.shapes_by_call(arguments) if self.asks_for_shapes else self.known_shapes(arguments)
        device = self.device_of(arguments)
        return self.in_one([_torch.empty(s, dtype=r.type, device=device) for s, r in zip(shapes, self.results)])

    def key(self, arguments) -> tuple:
        """What shapes of results depend on, unless it is the values of elements."""
        return tuple([int(a) if p.is_number else tuple([int(n) for n in a.shape]) for a, p in zip(arguments, self.parameters)])

    def shapes_by_call(self, arguments) -> tuple:
        """The shapes that a call with ones for floating numbers has."""
        key = self.key(arguments)
        if key not in self.known:
            self.known[key] = self.shapes_of_call(
                [k if p.is_number else _np.ones(k, p.dtype) if p.sizes else 1.0 for k, p in zip(key, self.parameters)]
            )
        return self.known[key]

    def in_one(self, results):
        """As an operator returns them."""
        return results[0] if len(results) == 1 else tuple(results)
)py";

inline constexpr const char* torch_on_cpu = R"py(

_device_type, _place = "cpu", "the CPU"


class _Custom(_Operator):
    """Through the wrappers of --emit=python."""

    def __init__(self, name: str, symbol: str, *signature):
        super().__init__(name, *signature)
        self.compute = globals()["_" + symbol]

    def computed(self, *arguments):
        """A tensor is the memory of a NumPy array, and the other way round."""
        values = [
            a if p.is_number else a.detach().numpy() if p.sizes else a.item() for a, p in zip(arguments, self.parameters)
        ]
        return self.in_one(
            [
                _torch.from_numpy(v) if isinstance(v, _np.ndarray) else _torch.tensor(v, dtype=r.type)
                for v, r in zip(self.called(values), self.results)
            ]
        )

    def called(self, values) -> tuple:
        results = self.compute(*values)
        return results if len(self.results) != 1 else (results,)

    def shapes_of_call(self, values) -> tuple:
        return tuple(_np.shape(r) for r in self.called(values))

    def device_of(self, arguments) -> _torch.device:
        return _torch.device("cpu")
)py";

inline constexpr const char* torch_on_gpu = R"py(

_device_type, _place = "cuda", "a GPU"
_integers = {"bool": _ctypes.c_bool, "int32": _ctypes.c_int32, "int64": _ctypes.c_int64}
_library.lt_copy.argtypes = (_ctypes.c_void_p, _ctypes.c_void_p, _ctypes.c_int64, _ctypes.c_void_p)
_library.lt_copy.restype = _ctypes.c_char_p


def _stream(device: _torch.device) -> int:
    """The stream that PyTorch queues its own work on."""
    return _torch.cuda.current_stream(device).cuda_stream


def _current_device() -> _torch.device:
    return _torch.device("cuda", _torch.cuda.current_device())


_on_device = _torch.cuda.device


def _structure(rank: int) -> type:
    """A tensor as the library takes it: its elements in C order, then its sizes. One of no dimension is a number, of one size, 1."""

    class Tensor(_ctypes.Structure):
        _fields_ = [("data", _ctypes.c_void_p), ("sizes", _ctypes.c_int64 * max(rank, 1))]

        def __init__(self, data=None, shape=()):
            super().__init__(data, tuple(shape) or (1,))

        def shape(self) -> tuple:
            return tuple(self.sizes) if rank else ()

    return Tensor


class _Custom(_Operator):
    """On the GPU that its arguments lie on, and on PyTorch's stream. The library works on the memory of tensors itself."""

    def __init__(self, name: str, symbol: str, *signature):
        super().__init__(name, *signature)
        self.function = getattr(_library, symbol)
        for array in self.parameters + self.results:
            array.structure = _structure(len(array.sizes))
        types = [_integers[p.dtype.name] if p.is_number else p.structure for p in self.parameters]
        self.function.argtypes = types + [_ctypes.c_void_p] * (len(self.results) + 2)
        self.function.restype = _ctypes.c_int

    def checked(self, arguments) -> tuple:
        values = super().checked(arguments)
        first = None
        for name, value in zip(self.names, values):
            if isinstance(value, _torch.Tensor) and value.device.type == _device_type:
                if first is None:
                    first = name, value.device
                elif value.device != first[1]:
                    raise TypeError(f"{self.name}: {name}: expected a tensor on {first[1]}, as {first[0]} is, got one on {value.device}")
        return values

    def device_of(self, arguments) -> _torch.device:
        for a in arguments:
            if isinstance(a, _torch.Tensor) and a.device.type == _device_type:
                return a.device
        return _current_device()

    def computed(self, *arguments):
        device = self.device_of(arguments)
        held = [a if p.is_number else a.detach().contiguous() for a, p in zip(arguments, self.parameters)]
        given = [a if p.is_number else p.structure(a.data_ptr(), a.shape) for a, p in zip(held, self.parameters)]
        key = self.key(arguments) if self.asks_for_shapes else None
        shapes = self.known.get(key) if self.asks_for_shapes else self.known_shapes(arguments)
        tensors = None if shapes is None else [_torch.empty(s, dtype=r.type, device=device) for s, r in zip(shapes, self.results)]
        with _on_device(device):
            stream = _stream(device)
            results = [r.structure() for r in self.results] if tensors is None else [
                r.structure(t.data_ptr(), t.shape) for r, t in zip(self.results, tensors)
            ]
            fits = self.called(given, results, stream)
            if tensors is None or not fits:  # they lie in the library's memory, until its next call
                tensors = [_torch.empty(s.shape(), dtype=r.type, device=device) for s, r in zip(results, self.results)]
                for s, t in zip(results, tensors):
                    if t.numel():
                        failure = _library.lt_copy(t.data_ptr(), s.data, t.numel() * t.element_size(), stream)
                        if failure:
                            raise Error(failure.decode(errors="replace"))
                if self.asks_for_shapes:
                    self.known[key] = tuple([t.shape for t in tensors])
        return self.in_one(tensors)

    def called(self, given, results, stream) -> bool:
        """Whether the results have the shapes of the memory that they were given."""
        message = _ctypes.c_char_p()
        status = self.function(*given, *[_byref(r) for r in results], stream, _byref(message))
        if status == 1:
            raise Error(message.value.decode(errors="replace"))
        return status == 0

    def shapes_of_call(self, values) -> tuple:
        """The library copies what lies in the memory of the processor to the GPU."""
        held = [v if p.is_number else _np.asarray(v, p.dtype) for v, p in zip(values, self.parameters)]
        results = [r.structure() for r in self.results]
        self.called([v if p.is_number else p.structure(v.ctypes.data, v.shape) for v, p in zip(held, self.parameters)], results, None)
        return tuple(r.shape() for r in results)
)py";

inline constexpr const char* torch_rules = R"py(

def _differentiable(chain: tuple, order: int = 0):
    """The first of these, with the second as its pullback, and so on: an operator, and a function that calls it."""
    first, *rest = chain
    pullback = _differentiable(tuple(rest), order + 1) if rest else None
    operator = _torch.library.custom_op(
        f"{__name__.replace('.', '_')}::{first.name}{'_vjp' * order}", first.computed, mutates_args=(), schema=first.schema()
    )
    operator.register_fake(first.fake)

    def save(ctx, inputs, output):
        ctx.save_for_backward(*[a for a, t in zip(inputs, first.is_tensor) if t])
        ctx.numbers = [a for a, t in zip(inputs, first.is_tensor) if not t]

    def backward(ctx, *cotangents):
        if pullback is None:
            raise Error(f"{first.name}: it has {'no derivative' if order == 0 else f'derivatives to order {order}, not beyond'}")
        tensors, numbers = iter(ctx.saved_tensors), iter(ctx.numbers)
        arguments = [next(tensors) if t else next(numbers) for t in first.is_tensor]
        seeds = [c for c, r in zip(cotangents, first.results) if r.floating]
        gradients = iter(pullback(*arguments, *seeds))
        return tuple([next(gradients) if p.floating else None for p in first.parameters])

    operator.register_autograd(backward, setup_context=save)

    def mapped(info, dimensions, *arguments):
        """torch.vmap: one call for each example."""
        rows = [
            call(*[a if d is None else a.select(d, i) for a, d in zip(arguments, dimensions)]) for i in range(info.batch_size)
        ]
        results = tuple(_torch.stack(column) for column in zip(*rows))
        return (results, (0,) * len(results)) if len(results) != 1 else (results[0], 0)

    if hasattr(operator, "register_vmap"):
        operator.register_vmap(mapped)

    def call(*arguments) -> tuple:
        results = operator(*first.checked(arguments))
        return results if isinstance(results, tuple) else (results,)

    return call
)py";

/// Of the library for a GPU: what results are copied with whose shapes the caller has not known.
inline constexpr const char* torch_copy = R"c(
extern "C" const char* lt_copy(void* to, const void* from, int64_t bytes, cudaStream_t stream) {
  const cudaError_t status = cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, stream);
  return status == cudaSuccess ? 0 : cudaGetErrorString(status);
}
)c";

}  // namespace lantern::tool
