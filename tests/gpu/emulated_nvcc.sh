#!/bin/sh
# Stands in for nvcc, as lanternc calls it: -c ... SOURCE.cu -o OBJECT. The object runs on the launch emulator, for which memory of
# the processor is the GPU's too. $EMULATED is the program that writes its text.
set -e
for word; do
  case $word in
    *.cu) source=$word ;;
    *.o) object=$word ;;
  esac
done
"$EMULATED" "$object.cpp" "$source"
exec ${CXX:-c++} -std=c++20 -O1 -fPIC -ffp-contract=off -w -DLANTERN_ONE_MEMORY -c "$object.cpp" -o "$object"
