#!/bin/bash
# A compiler launcher, as ccache is one: the objects that REUSE_FROM, a build of the same sources with the same flags, has of
# Lantern, built as a part of another project in the folder PART, are copied from there. Others are compiled.
out= dependencies= source=
for ((i = 1; i < $#; ++i)); do
  next=$((i + 1))
  case ${!i} in
    -o) out=${!next} ;;
    -MF) dependencies=${!next} ;;
    -c) source=${!next} ;;
  esac
done
known=$REUSE_FROM/${out#"$PART"/}
case $out in
  */installation.cpp.o | *.gch) ;;  # where lanternc finds its headers; headers that are precompiled
  "$PART"/*)
    if [ -f "$known" ]; then
      cp "$known" "$out" && echo "$out: $source" >"$dependencies"
      exit
    fi
    ;;
esac
exec "$@"
