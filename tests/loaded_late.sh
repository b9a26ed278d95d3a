#!/usr/bin/env bash
# A process that makes no code for this computer does not load LLVM, which takes longer than all
# else that it does before it begins; one that does, does.
set -u
isamap=${1:-build}/isamap
"$isamap" --version > /dev/null || exit 1
passed=0 failed=0
loads() { LD_DEBUG=files "$isamap" "$@" 2>&1 | grep -c 'calling init: .*/libLLVM'; }
expect() { # COUNT WHAT ARGUMENTS...
  local n=$1 what=$2
  shift 2
  if [ "$(loads "$@")" -eq "$n" ]; then passed=$((passed + 1)); else echo "$what: expected LLVM to be loaded $n times"; failed=$((failed + 1)); fi
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
expect 0 "isamap --version" --version
expect 0 "a schedule" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.sched"
if "$isamap" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.ll" > /dev/null 2>&1; then
  expect 1 "code" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.ll"
fi
# without LLVM, or with a library of its name that has none of its functions, the message is an error like others; other commands work
if "$isamap" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.ll" > /dev/null 2>&1; then
  library=$(LD_DEBUG=files "$isamap" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.ll" 2>&1 | sed -n 's#.*calling init: .*/\(libLLVM[^ ]*\)$#\1#p')
  cc -shared -fPIC -x c /dev/null -o "$out/$library"
  for cache in 0 1M; do
    said=$(ISAMAP_CACHE=$out/cache ISAMAP_CACHE_SIZE=$cache LD_LIBRARY_PATH=$out "$isamap" run examples/f32/gmv.isam -m machines/cpu-avx2.xml --json 2>&1)
    case $?$said in 1*'"error"'*"LLVM cannot be loaded: "*"undefined symbol: LLVM"*) passed=$((passed + 1)) ;; *) echo "without LLVM: $said" && failed=$((failed + 1)) ;; esac
  done
  LD_LIBRARY_PATH=$out expect 0 "a schedule without LLVM" compile examples/f32/gmv.isam -m machines/cpu-avx2.xml --no-cache -o "$out/gmv.sched"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
