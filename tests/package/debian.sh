#!/bin/sh
# usage: debian.sh BUILD FOLDER [MIRROR] : packs the .deb files of a build, installs them in a fresh Debian 12 in the folder, does there
# what README.md shows, by the commands that it prints, and removes them. Needs root, debootstrap and a mirror of Debian; takes
# minutes. FOLDER/root.tar is made once and used again.
set -eu
build=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
mirror=${3:-http://deb.debian.org/debian}
source=$(cd "$(dirname "$0")/../.." && pwd)
root=$folder/root
inside() {  # /proc is there as long as the command runs
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
fail() {
  echo "$1" >&2
  exit 1
}
# The contents of the fenced blocks in a language that have a word.
blocks() {  # LANGUAGE WORD
  awk -v language="$1" -v word="$2" '
    $0 == "```" language { inside = 1; text = ""; next }
    /^```/ { if (inside && index(text, word)) printf "%s", text; inside = 0; next }
    inside { text = text $0 "\n" }' "$source/README.md"
}

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "skipped: the test of the Debian packages needs root and debootstrap"
  exit 0
fi
rm -rf "$root" "$folder/packed"
(cd "$build" && cpack -G DEB -B "$folder/packed" >/dev/null)
if [ ! -f "$folder/root.tar" ]; then
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$folder/debootstrap.log" || fail "see $folder/debootstrap.log"
  tar -C "$root" -cf "$folder/root.tar.part" . && mv "$folder/root.tar.part" "$folder/root.tar"
else
  mkdir -p "$root" && tar -C "$root" -xf "$folder/root.tar"
fi
inside apt-get -qq update
inside sh -c "dpkg-query -W -f '\${Package}\n' | sort" >"$folder/before"

# The tools alone bring what lanternc needs; nothing else is installed but what the README's example of CMake and Python run by.
mkdir "$root/packages"
cp "$folder"/packed/*.deb "$root/packages"
inside sh -c 'apt-get -qq install --yes --no-install-recommends /packages/*.deb >/packages/log 2>&1' || fail "$(cat "$root/packages/log")"
inside apt-get -qq check
mkdir "$root/model"
cp "$source/samples/quickstart.cpp" "$root/model/model.cpp"
blocks sh "lanternc model.cpp" | grep -v '^cmake\|^tools/' >"$root/model/commands.sh"
[ "$(grep -c "^lanternc model.cpp" "$root/model/commands.sh")" -ge 2 ] || fail "README.md prints fewer commands than expected"
inside sh -ec "cd /model && sh -ex commands.sh && ./model >printed"
blocks text "f'(3)" | cmp - "$root/model/printed" || fail "the program does not print what README.md says"
inside sh -c 'apt-get -qq install --yes --no-install-recommends cmake make python3-numpy >/packages/log 2>&1' || fail "$(cat "$root/packages/log")"
[ "$(inside sh -c 'cd /model && python3 -c "import model; print(model.df(3.0))"')" = 29.0 ] || fail "model.df(3.0) is not 29"
{
  echo "cmake_minimum_required(VERSION 3.25)"
  echo "project(app LANGUAGES CXX)"
  blocks cmake "find_package(Lantern" | sed 's/^target_link_libraries/add_executable(app model.cpp)\n&/'
} >"$root/model/CMakeLists.txt"
inside sh -c 'cd /model && cmake -B build >log 2>&1 && cmake --build build >>log 2>&1' || fail "$(cat "$root/model/log")"
inside /model/build/app | cmp - "$root/model/printed" || fail "the program in process prints something else"

# Nothing of theirs is left.
inside sh -c 'dpkg -L lantern liblantern-dev' | sort -u >"$folder/files"
inside sh -c 'apt-get -qq purge --yes lantern liblantern-dev >/packages/log 2>&1' || fail "$(cat "$root/packages/log")"
while read -r file; do
  case $file in
    */lantern* | */Lantern* | */liblantern*) [ ! -e "$root$file" ] || fail "$file is left" ;;
  esac
done <"$folder/files"
grep -q "/bin/lanternc$" "$folder/files" || fail "the package has no lanternc"
inside sh -c 'apt-get -qq autoremove --purge --yes cmake make python3-numpy >/packages/log 2>&1' || fail "$(cat "$root/packages/log")"
inside sh -c "dpkg-query -W -f '\${Package}\n' | sort" | diff "$folder/before" - || fail "packages are left"
rm -rf "$root" "$folder/packed"
echo "the Debian packages: installed, used, removed"
