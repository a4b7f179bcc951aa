"""The gradient of saxpy.cpp in PyTorch: a function of autograd whose forward and backward pass are Lantern's.

saxpy_library.cu says how libsaxpy.so is made. `python3 saxpy_torch.py libsaxpy.so` tries it, on the GPU where PyTorch has one.
Tensors on a GPU are used where they are, on PyTorch's current stream; others are copied there and back.
"""

import ctypes
import sys

import torch


class Saxpy:
    def __init__(self, library: str):
        self.function = ctypes.CDLL(library).saxpy
        self.function.restype = ctypes.c_char_p
        pointer = ctypes.c_void_p
        self.function.argtypes = [pointer, ctypes.c_float, pointer, pointer, ctypes.c_int64, pointer, pointer]

    def value_and_slopes(self, a, x, y):
        """Of a number and two tensors of one length: the value, its slope by a, and by x."""
        for name, t in (("x", x), ("y", y)):
            if t.dtype != torch.float32 or t.dim() != 1 or t.device != x.device or len(t) != len(x):
                raise TypeError(f"saxpy: {name}: expected {len(x)} numbers of type float32 on {x.device}, "
                                f"got {t.dtype} of shape {tuple(t.shape)} on {t.device}")
        x, y = x.contiguous(), y.contiguous()
        stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
        numbers = (ctypes.c_float * 2)()
        by_x = torch.empty_like(x)
        failure = self.function(stream, float(a), x.data_ptr(), y.data_ptr(), len(x), numbers, by_x.data_ptr())
        if failure:
            raise RuntimeError(f"saxpy: {failure.decode()}")
        return numbers[0], numbers[1], by_x

    def __call__(self, a, x, y):
        """The sum of the squares of a x + y, differentiable by a and x."""
        return _Function.apply(self, a, x, y)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, saxpy, a, x, y):
        if y.requires_grad:
            raise TypeError("saxpy: y: there is no derivative by y")
        value, by_a, by_x = saxpy.value_and_slopes(a.detach(), x.detach(), y)
        ctx.save_for_backward(by_x)
        ctx.by_a = by_a
        return x.new_tensor(value)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, cotangent):
        (by_x,) = ctx.saved_tensors
        return None, cotangent.cpu() * ctx.by_a, cotangent * by_x, None


def main():
    saxpy = Saxpy(sys.argv[1])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    worst = 0.0
    for n in (0, 1, 1000, 100003):
        a = torch.tensor(0.75, requires_grad=True)
        x = torch.linspace(-1, 1, n, device=device, requires_grad=True)
        y = torch.cos(torch.arange(n, device=device, dtype=torch.float32))
        ours = saxpy(a, x, y)
        theirs = ((a.double().to(device) * x.double() + y.double()) ** 2).sum()
        wanted = torch.autograd.grad(theirs, (a, x))
        found = torch.autograd.grad(3 * ours, (a, x))
        for w, f in zip((theirs.detach(), *wanted), (ours.detach(), found[0] / 3, found[1] / 3)):
            if w.numel():
                worst = max(worst, float((w.double() - f.to(w.device)).abs().max() / (1 + w.double().abs().max())))
    try:
        saxpy(a, x, y[1:])
        raise AssertionError("an error was expected")
    except TypeError as error:
        print(error)
    print(f"{'ok ' if worst < 1e-5 else 'BAD'}  saxpy in PyTorch on {device}: within {worst:.1e}")
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
