#!/usr/bin/env bash
# g++ 12.2.0: whether the tail padding of a base class is used by the class derived from it depends on -std. The base below has
# a defaulted default constructor and a deleted copy constructor. Derived has 24 bytes with -std=c++17 and 16 with -std=c++20;
# no warning is given, also with -Wall -Wextra -Wabi=11. So two files of one program that differ in -std alone disagree about the
# places of members. Clang 18.1.1 says 24 for both, so that it agrees with g++ in C++17 and not in C++20.
#
# Seen: g++ 24 and 16, Clang 24 and 24. Needs Debian 12 on x86-64, its packages, Python 3 and PyPI; exits with 1 where that has
# changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q g++-12=12.2.0-14+deb12u1 libisl23 libmpc3 libmpfr6 libgmp10 >apt.log 2>&1 || { cat apt.log >&2; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
python3 -m venv venv
venv/bin/pip install -q libclang==18.1.1

cat >layout.cpp <<'CPP'
struct Base { int id; char kind; Base() = default; Base(const Base&) = delete; };
struct Derived : Base { char filled; double radius; };
CPP
# The compiler proper: sizes are asked by static_assert, which needs no headers.
size_by_gcc() {
  local size
  for size in 16 24; do
    { cat layout.cpp && echo "static_assert(sizeof(Derived) == $size);"; } >asked.cpp
    if LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu root/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus -quiet "-std=$1" -Wall -Wextra -Wabi=11 \
      -Werror -o /dev/null asked.cpp 2>messages; then
      echo "$size"
      return
    fi
  done
  cat messages >&2
}
size_by_clang() {
  venv/bin/python - "$1" <<'PYTHON'
import sys

import clang.cindex

unit = clang.cindex.Index.create().parse("layout.cpp", ["-std=" + sys.argv[1], "--target=x86_64-linux-gnu"])
print(next(c.type.get_size() for c in unit.cursor.get_children() if c.spelling == "Derived"))
PYTHON
}
seen="g++ $(size_by_gcc c++17) $(size_by_gcc c++20), Clang $(size_by_clang c++17) $(size_by_clang c++20)"
echo "$seen"
[ "$seen" = "g++ 24 16, Clang 24 24" ]
