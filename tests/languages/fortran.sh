#!/bin/sh
# usage: fortran.sh LANTERNC FOLDER : makes a module and an object of functions.cpp in the folder, and a program of them and
# fortran_test.f90, which it runs; says so in one line where there is no gfortran.
set -e
lanternc=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
refused() {  # OUTPUT-NAME MESSAGE OPTION..., of the source in $source
  output=$1
  expected=$2
  shift 2
  message=$("$lanternc" "$folder/$source" --emit=fortran -o "$folder/$output" "$@" 2>&1) && exit 1
  case $message in
    *"$expected") ;;
    *) echo "expected: $expected"; echo "got: $message"; exit 1 ;;
  esac
}
cat >"$folder/refused.cpp" <<'END'
#include <lantern/lantern.hpp>
lantern::Rep<double> f(lantern::Rep<double> x) { return x * x; }
LANTERN_FUNCTION(slope, lantern::grad(f))
LANTERN_FUNCTION(Slope, f)
END
cat >"$folder/tree.cpp" <<'END'
#include <lantern/lantern.hpp>
LANTERN_FUNCTION(root, [](lantern::Rep<lantern::Tree<double>> t) { return t.value(); })
END
source=tree.cpp
refused m.f90 "tree.cpp:2: error: --emit=fortran: root takes a tree, which Fortran has no type for; leave it out by --function=NAME"
source=refused.cpp
refused m.f90 "refused.cpp:4: error: --emit=fortran: Slope is in Fortran the name of another function too, which differs by upper and lower case; rename one"
refused slope.f90 "refused.cpp:3: error: --emit=fortran: slope is in Fortran the name of the module too; choose another output by -o"
refused m.f90 "error: --target=cuda does not go with --emit=fortran; load a library of --emit=shared" --target=cuda
refused 1.f90 "error: --emit=fortran: the module is named after the output, and '1' is no name: write -o $folder/m1.f90"

"$lanternc" "$here/functions.cpp" --emit=fortran -o "$folder/functions.f90"
if ! command -v gfortran >/dev/null; then
  echo "skipped: no gfortran (Debian: gfortran)"
  exit 0
fi
"$lanternc" "$here/functions.cpp" --emit=object -o "$folder/functions.o"
cd "$folder"
gfortran -std=f2018 -fcheck=all,no-array-temps functions.f90 "$here/fortran_test.f90" functions.o -lm -o fortran_test
./fortran_test
# Where stat is absent, a failure ends the program.
if message=$(./fortran_test fail 2>&1); then exit 1; fi
case $message in
  *"ERROR STOP at: index 7 is outside 0..1"*) ;;
  *) echo "got: $message"; exit 1 ;;
esac
