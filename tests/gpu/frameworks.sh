#!/bin/sh
# usage: frameworks.sh LANTERNC EMULATED SAMPLES FOLDER [nvcc]
# The samples that PyTorch and JAX call, on the launch emulator, by the interpreter of $LANTERN_TEST_PYTHON or python3;
# and where "nvcc" is given, compiled for real GPUs.
set -e
lanternc=$1 emulated=$2 samples=$3 folder=$4
python=${LANTERN_TEST_PYTHON:-python3}
mkdir -p "$folder"
"$lanternc" "$samples/saxpy.cpp" --emit=cuda --function=saxpy_gradient -o "$folder/saxpy_gradient.cu"
if [ "$5" = nvcc ]; then
  for arch in 75 80 90; do
    nvcc -O2 -std=c++17 -arch=sm_$arch --shared -Xcompiler -fPIC,-Wall -I "$folder" -o "$folder/real.so" "$samples/saxpy_library.cu" -ldl
    headers=$("$python" -c 'import jax; print(jax.ffi.include_dir())') && nvcc -O2 -std=c++17 -arch=sm_$arch --shared \
      -Xcompiler -fPIC -I "$folder" -I "$headers" -o "$folder/real_jax.so" "$samples/saxpy_jax.cu" -ldl
  done
fi
done=0
if "$python" -c 'import torch' 2>/dev/null; then
  "$emulated" "$folder/libsaxpy.so" "$folder/saxpy_gradient.cu" "$samples/saxpy_library.cu"
  "$python" "$samples/saxpy_torch.py" "$folder/libsaxpy.so"
  done=1
fi
if headers=$("$python" -c 'import jax; print(jax.ffi.include_dir())' 2>/dev/null); then
  "$emulated" "$folder/libsaxpy_jax.so" "$folder/saxpy_gradient.cu" "$samples/saxpy_library.cu" "$samples/saxpy_jax.cu" \
    "-I$headers" -DSAXPY_OF_HOST
  JAX_PLATFORMS=cpu "$python" "$samples/saxpy_jax.py" "$folder/libsaxpy_jax.so"
  done=1
fi
[ $done = 1 ] || echo "skipped: no python3 with PyTorch or JAX (LANTERN_TEST_PYTHON names another interpreter)"
