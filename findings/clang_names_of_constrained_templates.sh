#!/usr/bin/env bash
# Clang 19.1.7 (`zig c++` of ziglang 0.14.1) and g++ 12 of Debian 12 give one constrained function template two names: Clang encodes
# the `requires` clause in the name, g++ 12 does not. A program of Clang's does not link with a library of g++'s that instantiates the
# template ("undefined reference"), although both see the same declaration. Clang's -fclang-abi-compat=17 gives the name without it.
#
# Seen: the names that each line below tells. Needs Debian 12 on x86-64 with g++ 12 and binutils, Python 3 with venv, and PyPI; exits
# with 1 where that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/cache"
python3 -m venv zig
zig/bin/pip install -q ziglang==0.14.1

cat >twice.hpp <<'CPP'
template <class T> requires (sizeof(T) > 1) T twice(T x);
CPP
cat >library.cpp <<'CPP'
#include "twice.hpp"
template <class T> requires (sizeof(T) > 1) T twice(T x) { return x + x; }
template double twice(double);
CPP
cat >program.cpp <<'CPP'
#include "twice.hpp"
int main() { return twice(0.5) == 1.0 ? 0 : 1; }
CPP
g++-12 -std=c++20 -c library.cpp -o library.o
library=$(nm library.o | awk '/twice/ {print $3}')

for option in -fclang-abi-compat=19 -fclang-abi-compat=17; do
  zig/bin/python -m ziglang c++ -std=c++20 "$option" -c program.cpp -o program.o
  program=$(nm program.o | awk '/twice/ {print $2}')
  links=no
  if g++-12 program.o library.o -o program 2>errors.txt && ./program; then links=yes; fi
  echo "g++ $library, Clang with $option $program, links: $links" | tee -a seen.txt
done
diff seen.txt - <<'EXPECTED'
g++ _Z5twiceIdET_S0_, Clang with -fclang-abi-compat=19 _Z5twiceIdQgtstT_Li1EES0_S0_, links: no
g++ _Z5twiceIdET_S0_, Clang with -fclang-abi-compat=17 _Z5twiceIdET_S0_, links: yes
EXPECTED
