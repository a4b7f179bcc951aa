#!/bin/sh
# usage: jax.sh LANTERNC FOLDER : makes a module of framework_functions.cpp in the folder and tests it, by the first interpreter with
# JAX of $LANTERN_TEST_PYTHON, python3 and /usr/bin/python3; says so in one line where there is none.
set -e
here=$(dirname "$0")
for python in "${LANTERN_TEST_PYTHON:-python3}" python3 /usr/bin/python3; do
  if "$python" -c "import jax.ffi" 2>/dev/null; then
    LANTERN_PYTHON=$python "$1" "$here/framework_functions.cpp" --emit=jax -o "$2/jax_module.py"
    exec "$python" "$here/test_jax.py" "$2"
  fi
done
# Without JAX lanternc says what is missing.
message=$(LANTERN_PYTHON=/bin/false "$1" "$here/framework_functions.cpp" --emit=jax -o "$2/jax_module.py" 2>&1) && exit 1
expected="lanternc: error: --emit=jax: '/bin/false' has no jaxlib, whose headers are needed; activate an environment with jax, or name its interpreter by LANTERN_PYTHON"
if [ "$message" != "$expected" ]; then
  echo "expected: $expected"
  echo "got: $message"
  exit 1
fi
echo "skipped: no python3 with JAX (LANTERN_TEST_PYTHON names another interpreter)"
