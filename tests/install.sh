#!/usr/bin/env bash
# An installation that was moved: the command finds what came with it, and programs are built with it by pkg-config and by CMake's
# find_package. The command in the build folder works from any folder. Usage: tests/install.sh BUILD
set -u
build=$(cd "$1" && pwd)
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ISAMAP_MACHINE_PATH ISAMAP_PEER_PATH
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; tail -5 "$work/log"; failed=$((failed + 1)); fi; }

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
mkdir "$work/a b" && mv "$work/first" "$work/a b/moved" && prefix="$work/a b/moved"
cp tests/data/api/scale.isam tests/data/api/loads.c "$work"
cd "$work" || exit 1
command=$prefix/bin/isamap
check "in the build folder" "$build/isamap" map "$source/examples/i8/gmm.isam" -m edge16 -D M=16 -D N=16 -D K=16
check "a machine by its name" "$command" map "$source/examples/i8/gmm.isam" -m edge16 -D M=16 -D N=16 -D K=16
check "the host" "$command" run scale.isam --size T=3
check "PATH" env PATH="$prefix/bin:$PATH" isamap map "$source/examples/i8/gmm.isam" -m vdla -D M=16 -D N=16 -D K=16
[ -x "$prefix/share/isamap/sim/vdla/build" ] || { echo "FAILED: no model of vdla"; failed=$((failed + 1)); }
check "no machine of that name" bash -c "! '$command' check nonesuch"
! grep -rIl "$work/first" "$prefix" || { echo "FAILED: paths of the first place"; failed=$((failed + 1)); }
grep -q asan <<<"$(ldd "$build/isamap")" && { echo "$passed passed, $failed failed"; exit $failed; }

mkdir plain && mv "$prefix" plain/moved && prefix=$work/plain/moved # pkg-config splits its output at blanks
flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name isamap.pc)") pkg-config --cflags --libs isamap) || failed=$((failed + 1))
libraries=$(dirname "$(find "$prefix" -name libisamap.so)")
check "pkg-config" cc -std=c11 -Wall -Wextra -Werror loads.c $flags "-Wl,-rpath,$libraries" -o loads
check "the library finds its machines" ./loads scale.isam
mkdir user && cp loads.c user
cat >user/CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(isamap 0.1 REQUIRED)
add_executable(loads loads.c)
target_link_libraries(loads PRIVATE isamap::isamap)
C
check "find_package" cmake -S user -B user/build -DCMAKE_PREFIX_PATH="$prefix"
check "with find_package" cmake --build user/build
check "the same by CMake" user/build/loads scale.isam
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
