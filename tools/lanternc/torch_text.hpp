// What every module of --emit=torch has behind the wrappers of its functions.
#pragma once

namespace lantern::tool {

inline constexpr const char* torch_text = R"py(

import torch as _torch

if not hasattr(_torch.library, "custom_op"):
    raise ImportError(f"{__name__} needs PyTorch 2.4 or later, this is {_torch.__version__}")


class _Custom(_Signature):
    """A function of the library as an operator of PyTorch's. Floating numbers are tensors of no dimension there, because
    derivatives are taken by them; other numbers are Python's."""

    def __init__(self, name: str, symbol: str, *signature):
        super().__init__(name, *signature)
        self.compute = globals()["_" + symbol]
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
        if value.device.type not in ("cpu", "meta"):
            raise TypeError(f"{self.name}: {name}: expected a tensor on the CPU, got one on {value.device}")
        if value.dtype != parameter.type:
            if not _torch.can_cast(value.dtype, parameter.type):
                raise TypeError(f"{self.name}: {name}: expected numbers of type {parameter.dtype}, got {value.dtype}")
            value = value.to(parameter.type)
        self.require_shape(name, parameter, value.shape)
        return value

    def computed(self, *arguments):
        """A tensor is the memory of a NumPy array, and the other way round."""
        values = [
            a if p.is_number else a.detach().numpy() if p.sizes else a.item() for a, p in zip(arguments, self.parameters)
        ]
        results = self.compute(*values)
        if len(self.results) == 1:
            results = (results,)
        tensors = tuple(
            [
                _torch.from_numpy(v) if isinstance(v, _np.ndarray) else _torch.tensor(v, dtype=r.type)
                for v, r in zip(results, self.results)
            ]
        )
        return tensors if len(tensors) != 1 else tensors[0]

    def fake(self, *arguments):
        """Tensors without elements: what a program is traced with."""
        shapes = self._found(arguments) if self.asks_for_shapes else self.known_shapes(arguments)
        tensors = tuple(_torch.empty(s, dtype=r.type) for s, r in zip(shapes, self.results))
        return tensors if len(tensors) != 1 else tensors[0]

    def _found(self, arguments) -> tuple:
        """The shapes that a call with ones for floating numbers has."""
        key = tuple(int(a) if p.is_number else tuple(int(n) for n in a.shape) for a, p in zip(arguments, self.parameters))
        if key not in self.known:
            values = [k if p.is_number else _np.ones(k, p.dtype) if p.sizes else 1.0 for k, p in zip(key, self.parameters)]
            results = self.compute(*values)
            self.known[key] = tuple(_np.shape(r) for r in (results if len(self.results) != 1 else (results,)))
        return self.known[key]


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

}  // namespace lantern::tool
