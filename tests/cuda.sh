#!/usr/bin/env bash
# The cuda backend without a GPU. NVRTC and the driver are replaced by tests/cuda: kernels are compiled by the host's C++ compiler and executed thread by thread,
# launches and copies included, and the values compared with the interpreter's. Where the toolkit is, NVRTC makes PTX and cubins of the operators too.
set -u
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_MACHINE_PATH=machines ISAMAP_EMULATE=$PWD/tests/cuda
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }

isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/gmm.cu" >/dev/null && grep -q '__global__ void __launch_bounds__(32) gmm_0(unsigned char \*const base)' "$work/gmm.cu" && good || bad "no kernel in gmm.cu"
message=$(isamap compile examples/f32/rnn.isam -m gpu-sm80 -o "$work/rnn.cu" 2>&1) && bad "a size known only when it runs is taken"
case $message in *"size 'T' is known only when the program runs"*) good ;; *) bad "wrong message: $message" ;; esac
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  message=$(isamap run examples/f32/gmm.isam -m gpu-sm80 2>&1)
  status=$?
  case $status$message in 1*"no driver for one here"*) good ;; *) bad "run without a driver ends with $status: $message" ;; esac
fi

# a grid of two dimensions, and the price of its busiest instance
isamap compile examples/bf16/gmm.isam -m gpu-sm80 -o "$work/gmm.sched" >/dev/null
grep -q 'parallel row' "$work/gmm.sched" && grep -q 'parallel cta' "$work/gmm.sched" && good || bad "no grid of two dimensions"
cycles=$(isamap sim examples/bf16/gmm.isam -m gpu-sm80 --no-values | sed -nE 's/^cycles +([0-9]+),.*/\1/p')
awk -v cost="$(sed -nE '1s/.* cost ([0-9.e+]+) .*/\1/p' "$work/gmm.sched")" -v cycles="$cycles" 'BEGIN { exit !(cost > cycles / 1.5 && cost < cycles * 1.5) }' && good || bad "predicted far from the $cycles simulated cycles"

cc -shared -fPIC -x c /dev/null -o "$work/libnvrtc.so"
message=$(LD_LIBRARY_PATH=$work isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/gmm.cubin" 2>&1) && bad "a library without functions is taken for NVRTC"
case $message in *"NVRTC has no 'nvrtcCreateProgram'"*) good ;; *) bad "wrong message: $message" ;; esac

if command -v c++ >/dev/null; then
  cc -O1 -shared -fPIC tests/cuda/driver.c -o "$work/libcuda.so.1" && cc -O1 -shared -fPIC tests/cuda/nvrtc.c -o "$work/libnvrtc.so" || bad "the emulated device does not build"
  # a column says what part of the products must be on which instruction
  while read -r program instruction sizes; do
    # shellcheck disable=SC2086
    out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run "$program" -m gpu-sm80 --verify $sizes 2>&1)
    case $out in *"verified    yes"*) ;; *) bad "$program: $out" && continue ;; esac
    case $out in *", 1 ms of it on the device, predicted"*) ;; *) bad "$program: no time of the device: $out" && continue ;; esac
    case $out in *"$instruction"*) good ;; *) bad "$program: not '$instruction': $out" ;; esac
  done <<'LIST'
examples/f32/gmm.isam fma.16x32 -D M=48 -D N=64 -D K=20
examples/bf16/gmm.isam m16n8k16.bf16 -D M=35 -D N=24 -D K=33
examples/bf16/gmm.isam block.128x128.bf16 -D M=256 -D N=128 -D K=320
examples/i8/c2d.isam m16n8k32.i8 -D N=1 -D C=20 -D K=18 -D P=4 -D Q=9
examples/f32/softmax.isam fallback -D M=7 -D N=33
examples/f32/layernorm.isam fallback -D M=5 -D N=40
LIST
  # tails: kernels of their own, in which roles and tokens begin anew
  while read -r type instruction sizes; do
    printf '# decisions: QUESTION "SUBJECT" "ANSWER"\ncover "stmt 1 C" "%s"\n' "$instruction" >"$work/decisions"
    # shellcheck disable=SC2086
    out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run "examples/$type/gmm.isam" -m gpu-sm80 --verify --approach heuristic --decisions "$work/decisions" $sizes 2>&1)
    case $out in *"verified    yes"*"$instruction"*) good ;; *) bad "$type $sizes: $out" ;; esac
  done <<'LIST'
bf16 block.64x64.bf16 -D M=300 -D N=300 -D K=72
bf16 block.128x64.bf16 -D M=200 -D N=100 -D K=200
i8 block.128x128.i8 -D M=200 -D N=200 -D K=272
LIST
else
  echo "no C++ compiler: values are not compared"
fi

if isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/gmm.ptx" >"$work/log" 2>&1; then
  isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/gmm.cu" >/dev/null
  isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/gmm.sched" >/dev/null
  # a tile of M rows and N columns: four warps take M/2 rows and N/2 columns, 16 rows, 8 columns and 16 of K at a time
  planned=$(sed -nE 's/.*issue block\.([0-9]+)x([0-9]+)\.[a-z0-9]+\(K = ([0-9]+),.*/\1 \2 \3/p' "$work/gmm.sched" | awk '{ n += $1 / 32 * $2 / 16 * $3 / 16 } END { print n + 0 }')
  ptx=$(grep -c 'mma\.sync' "$work/gmm.ptx")
  [ "$planned" -gt 0 ] && [ "$planned" -eq "$ptx" ] && good || bad "$ptx matrix instructions in PTX, $planned planned"
  grep -q 'cp\.async\.cg' "$work/gmm.ptx" && grep -q 'ldmatrix' "$work/gmm.ptx" && good || bad "no copies to shared memory in PTX"
  for operator in gmm softmax layernorm c2d; do
    isamap compile examples/operators/$operator.isam -m gpu-sm80 -o "$work/$operator.cubin" >"$work/log" 2>&1 || { bad "$operator: $(cat "$work/log")" && continue; }
    grep -q '^kernel .* registers' "$work/log" || bad "$operator: no registers reported"
    grep '^kernel' "$work/log" | grep -v ' 0 bytes spilled, 0 on the stack' && bad "$operator spills" || good
  done
elif grep -q 'there is no NVRTC' "$work/log"; then
  echo "no NVRTC: no PTX and cubins"
else
  bad "gmm.ptx: $(cat "$work/log")"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
