#!/bin/sh
# usage: modules.sh LANTERNC EMULATED TESTS FOLDER: modules of --emit=torch and jax with --target=cuda, on the launch emulator, by the
# interpreter of $LANTERN_TEST_PYTHON or python3.
set -e
lanternc=$1 tests=$3 folder=$4
export EMULATED=$2
python=${LANTERN_TEST_PYTHON:-python3}
rm -rf "$folder"
mkdir -p "$folder/toolkit/bin" "$folder/toolkit/lib" "$folder/headers/xla/ffi/api"
cp "$tests/gpu/emulated_nvcc.sh" "$folder/toolkit/bin/nvcc"
chmod +x "$folder/toolkit/bin/nvcc"
ar rc "$folder/toolkit/lib/libcudart_static.a"
export LANTERN_CUDA_PATH="$folder/toolkit" PYTHONPATH="$tests/python"
done=0
if "$python" -c 'import torch' 2>/dev/null; then
  "$lanternc" "$tests/gpu/module_functions.cpp" --emit=torch --target=cuda -o "$folder/torch_module.py"
  "$python" "$tests/gpu/test_torch_module.py" "$folder"
  done=1
fi
if headers=$("$python" -c 'import jax; print(jax.ffi.include_dir())' 2>/dev/null); then
  # XLA gives a stream of a GPU to handlers of a GPU alone.
  for file in "$headers"/xla/ffi/api/*.h; do ln -s "$file" "$folder/headers/xla/ffi/api/"; done
  mv "$folder/headers/xla/ffi/api/ffi.h" "$folder/headers/xla/ffi/api/ffi_of_xla.h"
  cat > "$folder/headers/xla/ffi/api/ffi.h" <<END
#include "xla/ffi/api/ffi_of_xla.h"
struct CUstream_st;
namespace xla::ffi {
template <>
struct CtxDecoding<PlatformStream<::CUstream_st*>> {
  using Type = ::CUstream_st*;
  static std::optional<Type> Decode(const XLA_FFI_Api*, XLA_FFI_ExecutionContext*, DiagnosticEngine&) { return Type(nullptr); }
};
}  // namespace xla::ffi
END
  printf '#!/bin/sh\nprintf %%s "%s"\n' "$folder/headers" > "$folder/python_of_headers"
  chmod +x "$folder/python_of_headers"
  LANTERN_PYTHON="$folder/python_of_headers" "$lanternc" "$tests/gpu/module_functions.cpp" -DFOR_JAX --emit=jax --target=cuda -o "$folder/jax_module.py"
  JAX_PLATFORMS=cpu "$python" "$tests/gpu/test_jax_module.py" "$folder"
  done=1
fi
[ $done = 1 ] || echo "skipped: no python3 with PyTorch or JAX (LANTERN_TEST_PYTHON names another interpreter)"
