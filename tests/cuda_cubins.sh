#!/usr/bin/env bash
# PTX and cubins by NVRTC, where the toolkit is: the matrix instructions that were planned, copies to shared memory, registers of roles.
# shellcheck disable=SC2086
set -u
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_MACHINE_PATH=machines
passed=0 failed=0
large="-D M=2048 -D N=2048 -D K=2048"
. tests/cuda/toolkit.sh
good() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }

if isamap compile examples/operators/gmm.isam $large -m gpu-sm80 -o "$work/gmm.ptx" >"$work/log" 2>&1; then
  isamap compile examples/operators/gmm.isam $large -m gpu-sm80 -o "$work/gmm.cu" >/dev/null
  isamap compile examples/operators/gmm.isam $large -m gpu-sm80 -o "$work/gmm.sched" >/dev/null
  # a tile of M rows and N columns: four warps take M/2 rows and N/2 columns, 16 rows, 8 columns and 16 of K at a time
  planned=$(sed -nE 's/.*issue block\.([0-9]+)x([0-9]+)\.[a-z0-9.]+\(K = ([0-9]+),.*/\1 \2 \3/p' "$work/gmm.sched" | awk '{ n += $1 / 32 * $2 / 16 * $3 / 16 } END { print n + 0 }')
  ptx=$(grep -c 'mma\.sync' "$work/gmm.ptx")
  [ "$planned" -gt 0 ] && [ "$planned" -eq "$ptx" ] && good || bad "$ptx matrix instructions in PTX, $planned planned"
  grep -q 'cp\.async\.cg' "$work/gmm.ptx" && grep -q 'ldmatrix' "$work/gmm.ptx" && good || bad "no copies to shared memory in PTX"
  isamap compile examples/operators/gmm.isam $large -m gpu-sm90 -o "$work/gmm.ptx" >/dev/null
  isamap compile examples/operators/gmm.isam $large -m gpu-sm90 -o "$work/gmm.sched" >/dev/null
  # a tile of M rows: two groups of warps take half of them each, or half of the columns, 64 rows and 16 of K at a time
  planned=$(sed -nE 's/.*issue wgmma\.([0-9]+)x([0-9]+)\.[a-z0-9.]+\(K = ([0-9]+),.*/\1 \3/p' "$work/gmm.sched" | awk '{ n += ($1 > 128 ? $1 / 128 : 1) * $2 / 16 } END { print n + 0 }')
  ptx=$(grep -c 'wgmma\.mma_async' "$work/gmm.ptx")
  [ "$planned" -gt 0 ] && [ "$planned" -eq "$ptx" ] && good || bad "$ptx wgmma in PTX, $planned planned"
  # what it reads comes by tensor maps, and the schedule is proved
  isamap compile examples/bf16/gmm.isam -D M=4096 -D N=4096 -D K=4096 -m gpu-sm90 -o "$work/gmm.cubin" >"$work/log" 2>&1
  grep -q 'schedule    proved' "$work/log" && good || bad "4096x4096x4096 is not proved: $(cat "$work/log")"
  if [ -n "$nvdisasm" ]; then
    boxes=$("$nvdisasm" -c "$work/gmm.cubin" | grep -c 'UTMALDG\.2D')
    [ "$boxes" -eq 5 ] && good || bad "$boxes boxes are asked for in machine code, 1 of A and 4 of B planned"
  fi
  # registers for each role: those that copy have fewer, and together they fit
  isamap compile examples/operators/gmm.isam $large -m gpu-sm90 -o "$work/gmm.cubin" >"$work/log" 2>&1
  grep -q '384 threads, .* of which roles take 258048' "$work/log" && ! grep -q warning "$work/log" && good || bad "registers of roles: $(cat "$work/log")"
  if [ -n "$nvdisasm" ]; then
    asked=$("$nvdisasm" -c "$work/gmm.cubin" | sed -nE 's/.*USETMAXREG\.(DEALLOC|TRY_ALLOC)\.CTAPOOL .*(0x[0-9a-f]+) .*/\1 \2/p' | tr '\n' ' ')
    [ "$asked" = "DEALLOC 0x38 TRY_ALLOC 0xe0 " ] && good || bad "machine code asks for registers: $asked"
  fi
  # a library for sm_80 has PTX too, for later devices; code for sm_90a runs on no other
  isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/gmm.so" >/dev/null && grep -aq '^\.target sm_80$' "$work/gmm.so" && good || bad "no PTX beside the cubin"
  isamap compile examples/f32/gmm.isam -m gpu-sm90 -o "$work/gmm.so" >/dev/null && ! grep -aq '^\.target' "$work/gmm.so" && good || bad "PTX for sm_90a, which no later device takes"
  # a copy by a tensor map
  isamap compile tests/data/cuda/transposed.isam -m tests/data/cuda/tma.xml -o "$work/tma.cubin" >"$work/log" 2>&1 || bad "tma.cubin: $(cat "$work/log")"
  if [ -n "$nvdisasm" ]; then
    [ "$("$nvdisasm" -c "$work/tma.cubin" | grep -c 'UTMALDG\.2D')" -eq 2 ] && good || bad "no copies by tensor maps in machine code"
  fi
  mkdir "$work/wide" && cp machines/*.xml "$work/wide/" && sed -i 's/name="COPYING" value="56"/name="COPYING" value="104"/' "$work/wide/gpu-sm90.xml"
  isamap compile examples/operators/gmm.isam $large -m "$work/wide/gpu-sm90.xml" -o "$work/gmm.cubin" 2>&1 | grep -q "never goes on: its roles have 282624 bytes of registers, more than the block's 262144 bytes" && good || bad "roles with too many registers are not told"
  # of what the compiler says, the first error comes first
  mkdir "$work/machines" && cp machines/*.xml "$work/machines/" && sed -i 's/C\[p \* 4 + q\] = fmaf(/C[p * 4 + q] = fmag(/' "$work/machines/gpu-sm80.xml"
  message=$(isamap compile examples/f32/gmm.isam -m "$work/machines/gpu-sm80.xml" -o "$work/gmm.cubin" 2>&1 | grep 'does not compile')
  case $message in *"for 'sm_80': "*gpu-sm80.xml*' error: identifier "fmag" is undefined'*) good ;; *) bad "wrong message: $message" ;; esac
elif grep -q 'there is no NVRTC' "$work/log"; then
  echo "no NVRTC: no PTX and cubins"
else
  bad "gmm.ptx: $(cat "$work/log")"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
