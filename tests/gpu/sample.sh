#!/bin/sh
# A sample on the processor and with --device=cuda: they print the same, but for times. Run where stand-ins for NVIDIA's
# libraries, or a GPU, are found.
#   sample.sh PROGRAM OPTION...
set -u
program=$1
shift
there=$(mktemp)
trap 'rm -f "$there"' EXIT
plain() { sed -E 's/ *[0-9.]+ (s\b|ms\b|trees per second|pictures per second)//g'; }
if LANTERN_CUDA_DRIVER=/nonexistent.so "$program" --device=cuda "$@" > "$there" 2>&1; then
  echo "expected an error without a GPU"
  exit 1
fi
if ! grep -q "no GPU can be used here: .*; leave --device out to train on the processor" "$there"; then
  cat "$there"
  exit 1
fi
"$program" --device=cuda "$@" 2>&1 | plain > "$there"
"$program" "$@" 2>&1 | plain | diff - "$there" && grep -q "loss" "$there"
