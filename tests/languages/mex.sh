#!/bin/sh
# usage: mex.sh LANTERNC FOLDER : makes a MEX file of functions.cpp in the folder, and runs mex_test.m with it in Octave; says so in
# one line where there is none.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
"$1" "$here/functions.cpp" --emit=mex -o "$2/model.c"
if ! command -v octave-cli >/dev/null || ! command -v mkoctfile >/dev/null; then
  echo "skipped: no Octave with mkoctfile (Debian: octave liboctave-dev)"
  exit 0
fi
cd "$2"
mkoctfile --mex model.c
octave-cli --no-init-file --quiet "$here/mex_test.m"
