#!/bin/sh
# usage: interpreter.sh MODULE SCRIPT ARGUMENT... : runs the script by the first of $LANTERN_TEST_PYTHON, python3 and
# /usr/bin/python3 that has the module; says so in one line where none has.
module=$1
shift
for python in "${LANTERN_TEST_PYTHON:-python3}" python3 /usr/bin/python3; do
  if "$python" -c "import $module" 2>/dev/null; then exec "$python" "$@"; fi
done
echo "skipped: no python3 with the module $module (LANTERN_TEST_PYTHON names another interpreter)"
