#!/usr/bin/env bash
# The emulated device (tests/cuda): statements around products, products one after the other; what is planted is found; benchmarks beside an emulated cuBLAS.
set -u
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_MACHINE_PATH=machines
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }
. tests/cuda/emulator.sh
. tests/cuda/sample.sh

command -v c++ >/dev/null || { echo "no C++ compiler: nothing is executed"; exit 0; }
emulator "$work" || bad "the emulated device does not build"
while read -r machine program instruction sizes; do
  # shellcheck disable=SC2086
  out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run "$program" -m "$machine" --verify $sizes 2>&1)
  case $out in *"verified    yes"*"$instruction"*) good ;; *) bad "$program: not right on '$instruction': $out" ;; esac
done < <(sampled <<'LIST'
gpu-sm80 tests/data/cuda/residual.isam add.16x32 -D M=37 -D N=45 -D K=9
gpu-sm80 tests/data/cuda/biased.isam fma.16x32 -D P=5 -D Q=41
gpu-sm80 tests/data/cuda/twice.isam block.
gpu-sm80 tests/data/cuda/bytes.isam m16n8k32.u8.i8
gpu-sm90 tests/data/cuda/twice.isam wgmma.
gpu-sm80 tests/data/cuda/epilogue.isam add.
gpu-sm80 tests/data/cuda/epilogue.isam add.mma -D M=33 -D N=17 -D K=20
gpu-sm90 tests/data/cuda/epilogue.isam add.wg.
gpu-sm90 tests/data/cuda/epilogue.isam add.mma -D M=200 -D N=136 -D K=72
gpu-sm80 tests/data/cuda/layers.isam max.imm.16x32
gpu-sm80 tests/data/cuda/along.isam fallback
gpu-sm80 examples/bf16/gmm.isam block.64x64.rows.bf16 -D M=33 -D N=64 -D K=8192
gpu-sm90 tests/data/cuda/epilogue.isam add. -D M=40 -D N=64 -D K=8192
gpu-sm80 examples/operators/c2d.isam m16n8k16.f16 -D N=1 -D C=1024 -D K=64 -D P=3 -D Q=3
LIST
)
# what the planner finds too large for so small a product
while IFS='|' read -r machine statement instruction; do
  printf '# decisions: QUESTION "SUBJECT" "ANSWER"\ncover "%s" "%s"\n' "$statement" "$instruction" >"$work/decisions"
  out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run tests/data/cuda/epilogue.isam -m "$machine" --verify --approach heuristic --decisions "$work/decisions" 2>&1)
  case $out in *"verified    yes"*"$instruction"*add.*128*) good ;; *) bad "epilogue: not right on '$instruction': $out" ;; esac
done <<'LIST'
gpu-sm80|stmt 1 T|block.128x128.rows.bf16
gpu-sm90|stmt 1 T|wgmma.128x256.rows.bf16
LIST
printf '# decisions: QUESTION "SUBJECT" "ANSWER"\ncover "stmt 8 A" "block.64x64.rows.f16"\n' >"$work/decisions"
out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run examples/operators/att.isam -m gpu-sm80 -D B=1 -D T=64 -D D=64 --verify --approach heuristic --decisions "$work/decisions" 2>&1)
case $out in *"verified    yes"*"block.64x64.rows.f16 50 %"*) good ;; *) bad "attention: not right on 'block.64x64.rows.f16': $out" ;; esac
# of small products wgmma is not the first choice
printf '# decisions: QUESTION "SUBJECT" "ANSWER"\ncover "stmt 1 C" "wgmma.128x64.rows.bf16"\n' >"$work/wgmma"
large() { LD_LIBRARY_PATH=$work timeout 60 isamap run examples/bf16/gmm.isam --approach heuristic --decisions "$work/wgmma" --contexts 2 --verify "$@" 2>&1; }
# copied by threads where tensor maps cannot
mkdir -p "$work/threads" && cp machines/*.xml "$work/threads/" && sed -i 's/ls % $(w) == 0/ls % $(w) == 1/' "$work/threads/gpu-sm90.xml"
out=$(ISAMAP_MACHINE_PATH=$work/threads large -m "$work/threads/gpu-sm90.xml" -D M=128 -D N=256 -D K=256)
case $out in *"verified    yes"*wgmma*) good ;; *) bad "copies by threads on gpu-sm90: $out" ;; esac
rm -f "$work/maps"
out=$(ISAMAP_EMULATED_MAPS=$work/maps large -m gpu-sm90 -D M=128 -D N=256 -D K=192)
case $out in *"verified    yes"*wgmma*) good ;; *) bad "copies by tensor maps on gpu-sm90: $out" ;; esac
maps="type 1 dims 192 128 pitch 384 box 64 128 swizzle 3
type 1 dims 256 192 pitch 512 box 64 192 swizzle 3"
[ "$(sort -u "$work/maps")" = "$maps" ] && good || bad "on gpu-sm90 tensor maps are given $(sort -u "$work/maps")"
rm -f "$work/maps"
# the last tile of a sum is shorter: a map for each length of a box
cat >"$work/wgmma.short" <<'LIST'
# decisions: QUESTION "SUBJECT" "ANSWER"
cover "stmt 1 C" "wgmma.128x64.rows.bf16"
order "loop order of statement 1" "k"
tile "tile of statement 1" "k=192"
residency "copies of statement 1" "A@2x3 B@2x3 C@1x1"
LIST
out=$(ISAMAP_EMULATED_MAPS=$work/maps LD_LIBRARY_PATH=$work timeout 60 isamap run examples/bf16/gmm.isam -m gpu-sm90 -D M=128 -D N=128 -D K=832 --approach heuristic --decisions "$work/wgmma.short" --verify 2>&1)
case $out in *"verified    yes"*wgmma.128x64*) good ;; *) bad "boxes of two lengths: $out" ;; esac
[ "$(sed -nE 's/.*dims 128 832 .*box (64 [0-9]+) .*/\1/p' "$work/maps" | sort -u | tr '\n' ' ')" = "64 192 64 64 " ] && good || bad "boxes of a last tile: $(cat "$work/maps")"
rm -f "$work/maps"
# faults in a machine file that the emulated device must find: how many arrive at a barrier, a fence that is missing
while IFS='|' read -r file from to message; do
  mkdir -p "$work/faults" && cp machines/*.xml "$work/faults/" && sed -i "s/$from/$to/" "$work/faults/$file.xml"
  cmp -s machines/$file.xml "$work/faults/$file.xml" && bad "nothing to plant in $file.xml"
  sed -i 's/ls % $(w) == 0/ls % $(w) == 1/' "$work/faults/gpu-sm90.xml" # by threads, not by tensor maps
  out=$(ISAMAP_MACHINE_PATH=$work/faults large -m "$work/faults/gpu-sm90.xml" -D M=128 -D N=128 -D K=512)
  case $out in *"emulated device: "*"$message"*) good ;; *) bad "$file without '$from': $out" ;; esac
done < <(sampled <<'LIST'
mma-block|\${2\*HALF}|${HALF}|barrier
mma-block|\${2\*HALF}|${4*HALF}|barrier
gpu-sm90|fence\.proxy\.async\.shared::cta;||wgmma reads copies that no fence has made visible
gpu-sm90|wgmma\.fence\.sync\.aligned;||wgmma without a fence before it
gpu-sm90|"r"(\${COPIERS})|"r"(32)|barrier
gpu-sm90|asm volatile("setmaxnreg|__syncthreads(); asm volatile("setmaxnreg|__syncthreads in divergent code
LIST
)
# copies by tensor maps: what the maps are given, sizes that are known when the program runs, and faults
out=$(ISAMAP_EMULATED_MAPS=$work/maps LD_LIBRARY_PATH=$work timeout 60 isamap run tests/data/cuda/transposed.isam -m tests/data/cuda/tma.xml --verify 2>&1)
case $out in *"verified    yes"*"tile.64x64 100 %"*) good ;; *) bad "tensor maps: $out" ;; esac
maps="type 1 dims 192 128 pitch 384 box 64 64 swizzle 3
type 1 dims 192 64 pitch 384 box 64 64 swizzle 3"
# a temporary array begins where a map may begin: behind one of 24,000 bytes, not at the next multiple of 64
out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run tests/data/cuda/transposed.isam -D M=100 -D N=60 -D K=80 -m tests/data/cuda/tma.xml --verify 2>&1)
case $out in *"verified    yes"*"tile.64x64 100 %"*) good ;; *) bad "tensor maps of temporary arrays: $out" ;; esac
[ "$(sort -u "$work/maps")" = "$maps" ] && good || bad "tensor maps are given $(sort -u "$work/maps")"
# a copy before a loop completes at the first token in it, whose barrier may still be in use when it is issued
sed 's/total="132"/total="2"/' tests/data/cuda/tma.xml >"$work/two.xml"
out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run tests/data/cuda/transposed.isam -D M=512 -D N=256 -D K=64 -m "$work/two.xml" --verify 2>&1)
case $out in *"verified    yes"*"tile.64x64 100 %"*) good ;; *) bad "a copy before a loop: $out" ;; esac
# rows that are all one and the same are no array of a map: a rule of the machine file says so, and another copy is found
out=$(isamap sim tests/data/cuda/open.isam -m tests/data/cuda/tma.xml --size T=7 --verify 2>&1)
case $out in *"verified    yes"*"tile.64x64 100 %"*) good ;; *) bad "a row for all rows of a tile: $out" ;; esac
while IFS='|' read -r from to message; do
  sed "s/$from/$to/" tests/data/cuda/tma.xml >"$work/fault.xml"
  cmp -s tests/data/cuda/tma.xml "$work/fault.xml" && bad "nothing to plant for '$message'"
  out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run tests/data/cuda/transposed.isam -m "$work/fault.xml" --verify 2>&1)
  case $out in *"$message"*) good ;; *) bad "tma without '$from': $out" ;; esac
done < <(sampled <<'LIST'
asm volatile("mbarrier.expect_tx.*;||emulated device: a barrier is passed while copies to it are under way
R \* K \* 128)|R * K * 64)|emulated device: more bytes come to a barrier than it expects
R \* K \* 128)|R * K * 256)|emulated device: a barrier expects more bytes than come
box\[2\] = {64|box[2] = {128|the driver does not make state tmap: unknown (CUDA error 1)
"cuTensorMapEncodeTiled"|"cuTensorMapEncode"|the driver does not make state tmap: unknown (CUDA error 801)
SWIZZLE_128B = 3|SWIZZLE_128B = 0|verified    NO
 completes="full"||was not declared in this scope
 with="ask"| with="tile"|queue 'copy' is executed with 'tile', expected one of the same unit that has threads
size="128" align="128"||state 'tmap' of 'tma' is made of addresses, expected its size
LIST
)
# beside cuBLAS, whose place tests/cuda/cublas.c takes: both are right, and take a millisecond of the device's
cc -O1 -shared -fPIC tests/cuda/cublas.c -o "$work/libcublas.so" || bad "cublas.c does not build"
for program in f32 bf16 i8; do
  out=$(LD_LIBRARY_PATH=$work timeout 60 isamap bench examples/$program/gmm.isam -D M=40 -D N=64 -D K=32 -m gpu-sm80 --vs cublas --runs 2 --json 2>&1)
  case $out in *'"cublas": 1'*'"ours_ms": 1,'*'"ratio": 1,'*) good ;; *) bad "bench $program: $out" ;; esac
  case $out in *'"verified": true'*) good ;; *) bad "bench $program is wrong" ;; esac
done

# code for an older device runs on a later one, by way of PTX; code for one device alone does not. What fails is told in words
out=$(ISAMAP_EMULATED_CAPABILITY=9.0 LD_LIBRARY_PATH=$work timeout 60 isamap run examples/f32/gmm.isam -D M=40 -D N=64 -D K=32 -m gpu-sm80 --verify 2>&1)
case $out in *"verified    yes"*) good ;; *) bad "code for sm_80 on 9.0: $out" ;; esac
while IFS='|' read -r variable value machine message; do
  out=$(env "$variable=$value" LD_LIBRARY_PATH="$work" timeout 60 isamap run examples/bf16/gmm.isam -D M=128 -D N=256 -D K=128 -m "$machine" 2>&1) && bad "$variable=$value is no fault"
  case $out in *" gave 8: $message"*) good ;; *) bad "$variable=$value on $machine: $out" ;; esac
done < <(sampled <<'LIST'
ISAMAP_EMULATED_CAPABILITY|8.0|gpu-sm90|the device, of compute capability 8.0, refuses the code, which is for sm_90a alone: no kernel image is available for execution on the device (CUDA error 209)
ISAMAP_EMULATED_CAPABILITY|7.5|gpu-sm80|the device, of compute capability 7.5, refuses the code, which is for sm_80 and later: no kernel image
ISAMAP_EMULATED_FAULT|room|gpu-sm80|the device has no room for 
ISAMAP_EMULATED_FAULT|launch|gpu-sm80|the device refuses to launch kernel gmm_0: too many resources requested for launch (CUDA error 701)
ISAMAP_EMULATED_FAULT|address|gpu-sm80|a launch failed on the device: an illegal memory access was encountered (CUDA error 700)
LIST
)

# clock, power and temperature of the device stand in their own fields
cc -O1 -shared -fPIC tests/cuda/nvml.c -o "$work/libnvidia-ml.so.1" || bad "nvml.c does not build"
out=$(LD_LIBRARY_PATH=$work timeout 60 isamap bench examples/f32/gmm.isam -D M=40 -D N=64 -D K=32 -m gpu-sm80 --vs cublas --runs 2 --json 2>&1)
case $out in *'"device": "an emulated device"'*'"device_mhz": 1755,'*'"device_watts": 130.358,'*'"device_celsius": 41,'*) good ;; *) bad "figures of the device: $out" ;; esac

# several launches are one from the second run on, for each size; where a time is taken they are recorded before
LD_LIBRARY_PATH=$work isamap compile examples/f32/gru.isam -m gpu-sm80 -D H=160 -o "$work/gru.so" >/dev/null 2>&1
cc -I "$work" tests/cuda/graph.c "$work/gru.so" -Wl,-rpath,"$work" -o "$work/graph" || bad "graph.c does not build"
ISAMAP_EMULATED_GRAPHS=$work/graphs LD_LIBRARY_PATH=$work "$work/graph"
status=$?
[ $status -eq 0 ] && [ "$(cat "$work/graphs")" = "2 recorded, 14 replays" ] && good || bad "runs of a GRU end with $status: $(cat "$work/graphs")"
rm -f "$work/graphs"
ISAMAP_EMULATED_GRAPHS=$work/graphs LD_LIBRARY_PATH=$work isamap bench tests/data/cuda/along.isam -m gpu-sm80 --runs 3 >/dev/null 2>&1
grep -qE '^[1-9][0-9]* recorded, [1-9][0-9]* replays$' "$work/graphs" && good || bad "what is timed is not recorded: $(cat "$work/graphs")"

# the script for real hardware: a line of JSON for each item, several items at a time; what is done is not done again, and what is wrong is
for run in 1 2; do
  out=$(LD_LIBRARY_PATH=$work scripts/silicon --jobs 2 -o "$work/silicon" texts cpu-scalar cpu-avx2 gpu-sm80 2>"$work/said")
  lines=$(sed -nE 's/^\{"part": "texts", "machine": "([^"]*)", "name": "emit texts", "status": ([0-9]*), .*\}$/1 \1 \2/p' <<<"$out" | sort | tr '\n' ' ')
  case $run$lines in "11 cpu-avx2 0 1 cpu-scalar 0 " | "11 cpu-scalar 0 " | 2) good ;; *) bad "scripts/silicon, run $run: $out" ;; esac
  grep -q '^0 wrong, 0 left' "$work/said" && good || bad "scripts/silicon, run $run: $(cat "$work/said")"
done
scripts/silicon --jobs 0 texts >/dev/null && bad "no jobs are some"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
