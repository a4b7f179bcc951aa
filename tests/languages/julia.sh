#!/bin/sh
# usage: julia.sh LANTERNC FOLDER [--bless] : makes a module of functions.cpp in the folder, compares it with functions.jl beside this
# file, and runs julia_test.jl with it by $LANTERN_TEST_JULIA or julia; says so in one line where there is none.
set -e
lanternc=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
refused() {  # SOURCE OUTPUT-NAME MESSAGE
  message=$("$lanternc" "$folder/$1" --emit=julia -o "$folder/$2" 2>&1) && exit 1
  case $message in
    *"$3") ;;
    *) echo "expected: $3"; echo "got: $message"; exit 1 ;;
  esac
}
cat >"$folder/tree.cpp" <<'END'
#include <lantern/lantern.hpp>
LANTERN_FUNCTION(root, [](lantern::Rep<lantern::Tree<double>> t) { return t.value(); })
END
refused tree.cpp m.jl "tree.cpp:2: error: --emit=julia: root takes a tree, which Julia has no type for; leave it out by --function=NAME"
refused tree.cpp 1.jl "error: --emit=julia: the module is named after the output, and '1' is no name: write -o $folder/m1.jl"

# The text, but for the compiled code.
"$lanternc" "$here/functions.cpp" --emit=julia --cpu=x86-64-v3 -o "$folder/functions.jl"
sed '/^const _Lantern_code = /s/"[^"]*"/"..."/; 1s/lanternc [0-9.]*[0-9]/lanternc VERSION/' "$folder/functions.jl" >"$folder/text.jl"
if [ "${LANTERN_BLESS:-0}" = 1 ]; then cp "$folder/text.jl" "$here/functions.jl"; fi
diff "$here/functions.jl" "$folder/text.jl" || { echo "LANTERN_BLESS=1 writes $here/functions.jl anew"; exit 1; }
# Words that Julia keeps for itself, and the module's own name.
cat >"$folder/words.cpp" <<'END'
#include <lantern/lantern.hpp>
using D = lantern::Rep<double>;
LANTERN_FUNCTION(end, [](D function, D Base) { return function * Base; })
LANTERN_FUNCTION(words, [](D x) { return x; })
LANTERN_FUNCTION(size, [](lantern::Rep<lantern::Array<double>> lt_x1) { return lt_x1 + lt_x1; })
END
"$lanternc" "$folder/words.cpp" --emit=julia -o "$folder/words.jl"
grep -q '^export end_, words_, size, size!$' "$folder/words.jl"

julia=${LANTERN_TEST_JULIA:-julia}
if ! command -v "$julia" >/dev/null; then
  echo "skipped: no julia (LANTERN_TEST_JULIA names one)"
  exit 0
fi
"$lanternc" "$here/functions.cpp" --emit=julia -o "$folder/functions.jl"
JULIA_NUM_THREADS=4 "$julia" --startup-file=no "$here/julia_test.jl" "$folder"
"$julia" --startup-file=no -e 'include(ARGS[1]); words.end_(2, 3) == 6 && words.words_(1) == 1 && words.size([1, 2]) == [2, 4] || exit(1)' "$folder/words.jl"
