#!/usr/bin/env bash
# Compiled code with eight threads under the thread sanitizer: no race, the right values; and a planted race is found.
# Usage: tests/threads.sh BUILD. Needs llvm-19's opt and llc and a compiler with the sanitizer; says so where they are not.
set -euo pipefail
build=$1
isamap=$build/isamap
skip() { echo "skipped: $1"; exit 0; }
grep -q asan <<<"$(ldd "$isamap")" && skip "isamap itself is built with a sanitizer"
command -v opt-19 llc-19 >/dev/null || skip "no opt-19 and llc-19"
grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo || skip "this CPU has no AVX2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sizes=(M=91 N=200 K=120)
echo 'int main(void) { return 0; }' >"$folder/probe.c"
cc -fsanitize=thread "$folder/probe.c" -o "$folder/probe" 2>/dev/null && "$folder/probe" || skip "no thread sanitizer here"

"$isamap" compile examples/f32/gmm.isam -m cpu-avx2 --param CORES=8 --threads 8 "${sizes[@]/#/-D}" -o "$folder/gmm.sched" >/dev/null
grep -q parallel "$folder/gmm.sched" || { echo "the schedule has no parallel loop"; exit 1; }
for suffix in so ll; do # .so for its header
  "$isamap" compile examples/f32/gmm.isam -m cpu-avx2 --param CORES=8 --threads 8 "${sizes[@]/#/-D}" -o "$folder/gmm.$suffix" >/dev/null
done
# the sanitizer sees accesses of up to 16 bytes: vectors are taken apart
sed -E '/^define /s/ \{$/ sanitize_thread {/' "$folder/gmm.ll" |
  opt-19 -scalarize-load-store -passes='function(scalarize-masked-mem-intrin,scalarizer),tsan-module,function(tsan)' -o "$folder/gmm.bc"
llc-19 -relocation-model=pic -mattr=+avx2,+fma -filetype=obj "$folder/gmm.bc" -o "$folder/gmm.o"
cc -g -fsanitize=thread -I"$folder" "${sizes[@]/#/-D}" tests/data/threads/run.c "$folder/gmm.o" -o "$folder/run"
"$folder/run" || { echo "a race, or wrong values"; exit 1; }
if TSAN_OPTIONS=exitcode=66 "$folder/run" broken >"$folder/log" 2>&1; then
  echo "a planted race was not found"; exit 1
fi
grep -q 'data race' "$folder/log" || { cat "$folder/log"; exit 1; }
echo "threads: no race, and a planted one found"
