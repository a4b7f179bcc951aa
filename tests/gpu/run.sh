#!/usr/bin/env bash
# Runs what tools/gpu_check has packed, on a machine with a GPU: part by part, each with a limit of its own and within the
# time that is left of all. No part needs another one. What is found is written at once, to the terminal and to RESULTS.
#
#   ./run [NAME]     all parts, or the programs whose names begin so
#
#   SECONDS_IN_ALL=450  RESULTS=results
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
readonly all=${SECONDS_IN_ALL:-450}
results=${RESULTS:-${OUT:-$PWD/results}}
mkdir -p "$results"
results=$(cd "$results" && pwd)
failed=0

# part NAME LIMIT COMMAND...: its output goes to RESULTS/NAME.log as it comes.
part() {
  local name=$1 limit=$2 left=$((all - SECONDS)) status
  shift 2
  if ((left < 10)); then
    echo "== $name: left out, $SECONDS s have passed" | tee -a "$results/summary.log"
    return
  fi
  ((limit < left)) || limit=$left
  echo "== $name (at most $limit s)"
  timeout -k 5 "$limit" "$@" 2>&1 | tee "$results/$name.log"
  status=${PIPESTATUS[0]}
  ((status == 0)) || failed=$((failed + 1))
  case $status in
    124 | 137) status="ended after $limit s" ;;
    *) status="status $status" ;;
  esac
  echo "== $name: $status, at $SECONDS s" | tee -a "$results/summary.log"
}

# ---- libraries: the program's own, the driver, NVRTC, cuBLAS and cuDNN of a toolkit or of Python's packages. Others keep theirs.
for library in lib/*.xz lib/standard/*.xz; do
  [[ -f $library && ! -f ${library%.xz} ]] || continue
  { xz -dk "$library" || python3 -c 'import lzma, sys; open(sys.argv[1][:-3], "wb").write(lzma.open(sys.argv[1]).read())' "$library"; } &
done
wait
folders=$PWD/lib
add() { [[ ! -d $1 ]] || folders=$folders:$1; }
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib; do
  [[ ! -e $folder/libcuda.so.1 ]] || add "$folder"
done
export PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null || true)
# folder_of NAME: the folder that has a library whose name begins so.
folder_of() {
  local at
  for at in ${LANTERN_CUDA_PATH:+"$LANTERN_CUDA_PATH/lib"} /usr/local/cuda/lib64 /usr/local/cuda/lib; do
    if compgen -G "$at/$1*" >/dev/null; then
      echo "$at"
      return
    fi
  done
  at=$(timeout 10 find ${packages:+"$packages"} /usr/local /opt /usr/lib -name "$1*" -not -name '*alt*' 2>/dev/null | head -n 1)
  [[ -z $at ]] || dirname "$at"
}
nvrtc=$(folder_of libnvrtc.so.)
[[ -n ${LANTERN_CUDA_PATH:-} || -z $nvrtc ]] || export LANTERN_CUDA_PATH=${nvrtc%/*}
add "$nvrtc"
add "$(folder_of libcublas.so.)"
add "$(folder_of libcublasLt.so.)"
add "$(folder_of libcudnn.so.)"
folders=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/cache}
with() { env LD_LIBRARY_PATH="$folders" "$@"; }
# The packed standard library of C++ only where the program does not start with the machine's own: asked for how it is used
# it ends with 2.
with ./gpu_check --usage >/dev/null 2>&1
[[ $? == 2 ]] || add "$PWD/lib/standard"

{
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv,noheader
  uname -a
  grep -m 1 'model name' /proc/cpuinfo
  nvcc --version 2>/dev/null | tail -n 2
  echo "NVRTC in ${LANTERN_CUDA_PATH:-/usr/local/cuda}, libraries in $folders"
  with ldd ./gpu_check | grep 'not found'
} 2>&1 | tee "$results/about.log"

if (($# > 0)); then
  part programs "$all" env LD_LIBRARY_PATH="$folders" ./gpu_check --seconds "$all" --results "$results/programs.txt" "$@"
  exit "$failed"
fi

# ---- whether anything runs; all programs, small; all of them, timed; others to compare with; checkers
[[ ! -x ahead ]] || part ahead 20 ./ahead
part small 130 env LD_LIBRARY_PATH="$folders" ./gpu_check --small --seconds 125 --each 20 --results "$results/small.txt"
part programs 170 env LD_LIBRARY_PATH="$folders" ./gpu_check --seconds 165 --each 30 --results "$results/programs.txt"
if command -v nvcc >/dev/null; then
  # shellcheck disable=SC2016
  part source 40 bash -c 'nvcc -O2 -std=c++17 -arch=native -o from_source main.cu saxpy_gradient.cu -ldl && ./from_source'
fi
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  [[ ! -f libsaxpy.so ]] || part saxpy_torch 30 python3 -u saxpy_torch.py ./libsaxpy.so
  part torch 80 python3 -u torch_times.py
fi
if python3 -c 'import jax; assert jax.default_backend() == "gpu"' 2>/dev/null; then
  # shellcheck disable=SC2016
  ! command -v nvcc >/dev/null || part saxpy_jax 60 bash -c 'nvcc -O2 -std=c++17 -arch=native --shared -Xcompiler -fPIC -o libsaxpy_jax.so \
    -I "$(python3 -c "import jax; print(jax.ffi.include_dir())")" saxpy_jax.cu -ldl && python3 -u saxpy_jax.py ./libsaxpy_jax.so'
  part jax 60 python3 -u jax_times.py
fi
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    part "$tool" 50 env LD_LIBRARY_PATH="$folders" compute-sanitizer --target-processes all --tool "$tool" --error-exitcode 9 \
      ./gpu_check --small --seconds 45 --each 45 small
  done
fi
part no_dnn 20 env LD_LIBRARY_PATH="$folders" LANTERN_CUDNN=0 ./gpu_check --seconds 18 --each 15 --results "$results/no_dnn.txt" convolution
part no_graphs 40 env LD_LIBRARY_PATH="$folders" LANTERN_CUDA_GRAPHS=0 ./gpu_check --small --seconds 35 --each 15 \
  --results "$results/no_graphs.txt"

echo "== BAD lines"
grep -h '^BAD' "$results"/*.txt | sort | uniq -c
cat "$results/summary.log"
exit "$failed"
