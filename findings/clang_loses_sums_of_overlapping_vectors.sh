#!/usr/bin/env bash
# Clang 19.1.7 and 22.1.8 (`zig cc` of ziglang 0.14.1 and 0.17.1): a loop that adds to overlapping pairs of numbers loses sums with
# -O1 and above, and nothing is said. In each iteration a pair is read, added to and stored two elements ahead; then one element of
# the pair before it; then that pair. LLVM's pass LoopLoadElimination hands the pair that was stored ahead to the next iteration in a
# register, although the store of the one element comes between. Without optimisation, and with Clang 18.1.6 (ziglang 0.13.0), the
# sums are right. LLVM knows of it: llvm-project issue 224832. A store to a volatile element keeps the pass away from the loop.
#
# Seen: "0.13.0 -O1: 1 2 2 3 2 3 2 3 2 3 1 1" and "0.14.1 -O1: 1 1 2 2 2 2 2 2 2 2 1 1", the same from 0.17.1 and with -O2.
# Needs Debian 12 on x86-64, Python 3 with venv, and PyPI; exits with 1 where that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/cache"

cat >sums.c <<'C'
#include <stdio.h>
#include <string.h>

typedef double pair __attribute__((vector_size(16)));

static pair load(const double *from) {
  pair value;
  memcpy(&value, from, sizeof value);
  return value;
}

static void store(double *to, pair value) { memcpy(to, &value, sizeof value); }

__attribute__((noinline)) void count(double *sum, long n) {
  const pair one = {1, 1};
  for (long i = 0; i < n; i += 2) {
    store(sum + i + 2, load(sum + i + 2) + one);
    sum[i + 1] += 1;
    store(sum + i, load(sum + i) + one);
  }
}

int main(void) {
  double sum[12] = {0};
  count(sum, 10);
  for (int i = 0; i < 12; ++i) printf("%g%s", sum[i], i < 11 ? " " : "\n");
}
C

right="1 2 2 3 2 3 2 3 2 3 1 1"
wrong="1 1 2 2 2 2 2 2 2 2 1 1"
for version in 0.13.0 0.14.1 0.17.1; do
  python3 -m venv "$version"
  "$version/bin/pip" install -q "ziglang==$version"
  for level in -O0 -O1 -O2; do
    "$version/bin/python" -m ziglang cc "$level" sums.c -o sums
    seen=$(./sums)
    echo "$version $level: $seen"
    expected=$wrong
    if [ "$version" = 0.13.0 ] || [ "$level" = -O0 ]; then expected=$right; fi
    [ "$seen" = "$expected" ]
  done
done
