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
${CXX:-c++} -std=c++20 -O1 -fPIC -fno-gnu-unique -ffp-contract=off -w -DLANTERN_ONE_MEMORY -c "$object.cpp" -o "$object.first"
# Each object has an emulator of its own: of its functions only those that a test asks are seen from others.
ld -r --force-group-allocation "$object.first" -o "$object"
{ nm "$object" | awk '$2 == "T" { print $3 }'; echo lantern_emulator_count; } > "$object.names"
objcopy --keep-global-symbols="$object.names" "$object"
