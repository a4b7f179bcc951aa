// What every module of --emit=jax begins with, behind the imports of all Python modules.
#pragma once

namespace lantern::tool {

inline constexpr const char* jax_text = R"py(
import functools as _functools

import jax as _jax
import numpy as _np


class _Custom(_Signature):
    """A function of the library as a call of XLA's."""

    def __init__(self, name: str, symbol: str, *signature):
        super().__init__(name, *signature)
        self.target = f"{__name__}.{symbol}.{id(_library)}"
        for platform, handler in _handlers:
            _jax.ffi.register_ffi_target(self.target, _jax.ffi.pycapsule(getattr(_library, handler + symbol)), platform=platform)
        self.find_shapes = getattr(_library, "lt_shapes_" + symbol)
        self.known = {}

    def _checked(self, name: str, parameter: _Array, value):
        if parameter.dtype.itemsize == 8 and not _jax.config.jax_enable_x64:
            raise TypeError(f"{self.name}: {name} has 64 bits: call jax.config.update('jax_enable_x64', True) first")
        array = value if isinstance(value, _jax.Array) else _np.asarray(value)  # what is known stays so under jit
        if array.dtype != parameter.dtype:
            if not _np.can_cast(array.dtype, parameter.dtype, "same_kind"):
                raise TypeError(f"{self.name}: {name}: expected numbers of type {parameter.dtype}, got {array.dtype}")
            array = array.astype(parameter.dtype)
        self.require_shape(name, parameter, array.shape)
        return array

    def __call__(self, *arguments) -> tuple:
        arguments = self.checked(arguments)
        shapes = self.shapes(arguments)
        types = [_jax.ShapeDtypeStruct(s, r.dtype) for s, r in zip(shapes, self.results)]
        return tuple(_jax.ffi.ffi_call(self.target, types, vmap_method="expand_dims")(*arguments))

    def shapes(self, arguments) -> tuple:
        """Of the results. They are those of arguments, or known, or found by a call with ones for numbers."""
        if not self.asks_for_shapes:
            return self.known_shapes(arguments)
        sizes = tuple(n for a in arguments for n in a.shape)
        integers = [a for i, a in enumerate(arguments) if i in self.integers]
        if any(isinstance(a, _jax.core.Tracer) for a in integers):
            found, other = self._found(sizes, (1,) * len(integers)), self._found(sizes, (2,) * len(integers))
            if found != other:
                raise TypeError(
                    f"{self.name}: the shape of its result depends on an integer that is not known while JAX traces; "
                    "close over the integer, or mark it with static_argnums"
                )
            return found
        return self._found(sizes, tuple(int(a) for a in integers))

    def _found(self, sizes: tuple, integers: tuple) -> tuple:
        key = (sizes, integers)
        if key not in self.known:
            ranks = [len(r.sizes) for r in self.results]
            out = (_ctypes.c_int64 * (sum(ranks) + 1))()
            message = _ctypes.c_char_p()
            if self.find_shapes((_ctypes.c_int64 * (len(integers) + 1))(*integers),
                                (_ctypes.c_int64 * (len(sizes) + 1))(*sizes), out, _byref(message)):
                raise Error(f"{self.name}: its shape was asked for by a call with ones: {message.value.decode(errors='replace')}")
            rest = iter(out)
            self.known[key] = tuple(tuple(next(rest) for _ in range(r)) for r in ranks)
        return self.known[key]


def _with_rule(first, define):
    """A callable of the function, with what `define` gives it for a derivative."""

    @_functools.lru_cache(maxsize=256)
    def rule(numbers: tuple):
        """For integers (position, value) that shapes depend on: JAX must not trace them."""
        fixed = dict(numbers)
        free = [p for i, p in enumerate(first.parameters) if i not in fixed]

        def whole(arguments):
            rest = iter(arguments)
            return tuple(fixed[i] if i in fixed else next(rest) for i in range(len(first.parameters)))

        def function(*arguments):
            return first(*whole(arguments))

        return define(function, free, whole)

    def call(*arguments):
        arguments = first.checked(arguments)
        fixed = first.integers if first.asks_for_shapes else ()
        numbers = {i: int(arguments[i]) for i in fixed if not isinstance(arguments[i], _jax.core.Tracer)}
        return rule(tuple(numbers.items()))(*(a for i, a in enumerate(arguments) if i not in numbers))

    call.first = first
    return call


def _no_tangent(a):
    """What JAX has for the derivative by a whole number."""
    return _np.zeros(_np.shape(a), _jax.dtypes.float0)


def _differentiable(chain: tuple):
    """The first of these, with the second as its pullback, and so on."""
    first, *rest = chain
    pullback = _differentiable(tuple(rest)) if rest else None
    gives_values = bool(rest) and len(rest[0].results) > sum(p.floating for p in first.parameters)

    def define(function, free, whole):
        if pullback is None:
            return function
        function = _jax.custom_vjp(function)
        if gives_values:
            # One call has the value and the gradient, of which the cotangent of the one result is a factor.
            one = _np.ones((), first.results[0].dtype)

            def forward(*arguments):
                value, *gradients = pullback(*whole(arguments), one)
                return (value,), (gradients, [None if p.floating else a for a, p in zip(arguments, free)])

            def backward(kept, cotangents):
                gradients = iter(kept[0])
                return tuple(cotangents[0] * next(gradients) if p.floating else _no_tangent(a) for a, p in zip(kept[1], free))
        else:

            def forward(*arguments):
                return function(*arguments), arguments

            def backward(arguments, cotangents):
                seeds = [c for c, r in zip(cotangents, first.results) if r.floating]
                gradients = iter(pullback(*whole(arguments), *seeds))
                return tuple(next(gradients) if p.floating else _no_tangent(a) for a, p in zip(arguments, free))

        function.defvjp(forward, backward)
        return function

    return _with_rule(first, define)


def _forward_chain(chain: tuple):
    """The first of these, with the second as what gives the tangents of its results, and so on."""
    first, *rest = chain
    pushforward = _forward_chain(tuple(rest)) if rest else None

    def define(function, free, whole):
        if pushforward is None:
            return function
        function = _jax.custom_jvp(function)

        def push(arguments, tangents):
            values = function(*arguments)
            slopes = iter(pushforward(*whole(arguments), *(t for t, p in zip(tangents, free) if p.floating)))
            return values, tuple(next(slopes) if r.floating else _no_tangent(v) for v, r in zip(values, first.results))

        function.defjvp(push)
        return function

    return _with_rule(first, define)


def _by_forward_mode(function, rest: tuple):
    """The function with derivatives by forward mode, for jax.jvp and jax.jacfwd."""
    call = _forward_chain((function.first, *rest))

    def forward(*arguments):
        results = call(*arguments)
        return results if len(results) != 1 else results[0]

    forward.__doc__ = f"The same as {function.first.name}, differentiable by forward mode{', twice' if len(rest) > 1 else ''}."
    return forward
)py";

}  // namespace lantern::tool
