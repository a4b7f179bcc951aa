#!/usr/bin/env bash
# Runs what tools/gpu_check has packed, on a machine with a GPU: part by part, each with a limit of its own and within the
# time that is left of all. No part needs another one. What is found is written at once, to the terminal and to RESULTS.
#
#   ./run [NAME]     all parts, or the programs whose names begin so
#
#   SECONDS_IN_ALL=450  RESULTS=results
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
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
  case $status in
    0) ;;
    124 | 137) echo "$name: ended after $limit s" | tee -a "$results/$name.log" ;;
    *) failed=$((failed + 1)) ;;
  esac
  echo "== $name: status $status, at $SECONDS s" | tee -a "$results/summary.log"
}

# ---- where libraries are
for library in lib/*.xz lib/standard/*.xz; do
  [[ -f $library && ! -f ${library%.xz} ]] && { xz -dk -T0 "$library" & }
done
wait
add() { [[ -d $1 ]] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$1; }
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
add "$PWD/lib"
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib; do
  [[ -e $folder/libcuda.so.1 ]] && add "$folder"
done
export PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
# NVRTC of a toolkit, else of Python's packages.
if [[ -z ${LANTERN_CUDA_PATH:-} && ! -e /usr/local/cuda/lib64/libnvrtc.so && ! -e /usr/local/cuda/lib/libnvrtc.so ]]; then
  nvrtc=$(find /usr/local /opt /usr/lib "$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null || echo /usr/lib)" \
    -name 'libnvrtc.so*' -not -name '*alt*' 2>/dev/null | head -n 1)
  [[ -n $nvrtc ]] && export LANTERN_CUDA_PATH=$(dirname "$(dirname "$nvrtc")")
fi
# cuBLAS likewise; cudnn and others come with it.
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib "${LANTERN_CUDA_PATH:-/none}/lib" \
  "$(python3 -c 'import nvidia.cublas, os; print(os.path.join(list(nvidia.cublas.__path__)[0], "lib"))' 2>/dev/null || echo /none)"; do
  add "$folder"
done
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/cache}

about() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm --format=csv,noheader
  uname -a
  grep -m 1 'model name' /proc/cpuinfo
  nvcc --version 2>/dev/null | tail -n 2
  echo "NVRTC of ${LANTERN_CUDA_PATH:-/usr/local/cuda}; libraries of $LD_LIBRARY_PATH"
  ldd ./gpu_check | grep 'not found'
  ldconfig -p | grep -E 'libcuda\.so|libcublas\.so|libcudnn\.so'
  return 0
}
about 2>&1 | tee "$results/about.log"
# The packed standard library of C++ only where the program does not start with the machine's own.
if ! ./gpu_check --usage >/dev/null 2>&1 && [[ $? != 2 ]]; then add "$PWD/lib/standard"; fi

if (($# > 0)); then
  part programs "$all" ./gpu_check --seconds "$all" --results "$results/programs.txt" "$@"
  exit "$failed"
fi

# ---- by how much each tells: whether anything runs; all programs, small; all, timed; others to compare with; checkers
[[ -x ahead ]] && part ahead 20 ./ahead
part small 130 ./gpu_check --small --seconds 125 --each 20 --results "$results/small.txt"
part programs 170 ./gpu_check --seconds 165 --each 30 --results "$results/programs.txt"
if command -v nvcc >/dev/null; then
  from_source() {
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    nvcc -O2 -std=c++17 -arch="sm_${capability:-90}" -o "$results/from_source" main.cu saxpy_gradient.cu -ldl && "$results/from_source"
    local status=$?
    rm -f "$results/from_source"
    return $status
  }
  export -f from_source
  export results
  part source 40 bash -c from_source
fi
if python3 -c 'import torch' 2>/dev/null; then part torch 80 python3 -u torch_times.py; fi
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    part "$tool" 50 compute-sanitizer --target-processes all --tool "$tool" --error-exitcode 9 ./gpu_check --small --seconds 45 small
  done
fi
LANTERN_CUDA_GRAPHS=0 part no_graphs 40 ./gpu_check --small --seconds 35 --each 15 --results "$results/no_graphs.txt"
part again 40 ./gpu_check --small --seconds 35 small_steps

echo "== BAD lines"
grep -h '^BAD' "$results"/*.txt 2>/dev/null | sort | uniq -c
cat "$results/summary.log"
exit "$failed"
