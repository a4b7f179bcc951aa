#!/bin/sh
# usage: wheel.sh LANTERNC FOLDER : makes a wheel of numbers.cpp in the folder, installs it by pip in a new environment, tests it
# there, and removes it; says so in one line where no python3 can make an environment.
set -e
lanternc=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$folder"
mkdir -p "$folder/empty"
message=$("$lanternc" "$here/numbers.cpp" --emit=wheel -o "$folder/numbers.whl" 2>&1) && exit 1
case $message in
  "lanternc: error: --emit=wheel: expected an output named as pip needs it, 'model-0-py3-none-"*"got 'numbers.whl'") ;;
  *) echo "got: $message"; exit 1 ;;
esac
wheel=$folder/numbers_module-1.2-py3-none-linux_$(uname -m).whl
"$lanternc" "$here/numbers.cpp" --emit=wheel -o "$wheel"
arrays=$folder/arrays_module-0.1-py3-none-linux_$(uname -m).whl
"$lanternc" "$here/arrays.cpp" --emit=wheel -o "$arrays"
for python in "${LANTERN_TEST_PYTHON:-python3}" python3 /usr/bin/python3; do
  if "$python" -m venv "$folder/environment" 2>/dev/null >/dev/null; then
    "$python" "$here/check_wheel.py" "$wheel" ""
    "$python" "$here/check_wheel.py" "$arrays" numpy
    in=$folder/environment/bin
    "$in/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
    cd "$folder/empty"
    "$in/python" "$here/test_numbers.py" "$folder/empty"
    "$in/pip" show --disable-pip-version-check numbers_module | grep "^Version: 1.2$"
    "$in/pip" uninstall --quiet --yes --disable-pip-version-check numbers_module
    if "$in/python" -c "import numbers_module" 2>/dev/null; then exit 1; fi
    exit 0
  fi
  rm -rf "$folder/environment"
done
echo "skipped: no python3 with venv and pip (Debian: python3-venv; LANTERN_TEST_PYTHON names another interpreter)"
