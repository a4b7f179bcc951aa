#!/bin/sh
# usage: site.sh ROOT FOLDER : tools/docs makes the site in the folder, where PyPI can be reached or was before.
set -u
command -v python3 >/dev/null || { echo "skipped: python3 is missing"; exit 0; }
mkdir -p "$2"
PIP_RETRIES=0 PIP_DEFAULT_TIMEOUT=10 "$1/tools/docs" "$2" >"$2/log" 2>&1
status=$?
cat "$2/log"
if [ $status -ne 0 ] && grep -qE "from versions: none|ensurepip is not available" "$2/log"; then
  echo "skipped: PyPI cannot be reached, or python3-venv is missing"
  exit 0
fi
exit $status
