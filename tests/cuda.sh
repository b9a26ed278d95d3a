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
grep -q 'parallel row' "$work/gmm.sched" && grep -q 'parallel block' "$work/gmm.sched" && good || bad "no grid of two dimensions"
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
examples/i8/c2d.isam m16n8k32.i8 -D N=1 -D C=20 -D K=18 -D P=4 -D Q=9
examples/f32/softmax.isam fallback -D M=7 -D N=33
examples/f32/layernorm.isam fallback -D M=5 -D N=40
LIST
else
  echo "no C++ compiler: values are not compared"
fi

if isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/gmm.ptx" >"$work/log" 2>&1; then
  isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/gmm.cu" >/dev/null
  text=$(sed -n '/^#line 1 "gmm.cu"/,$p' "$work/gmm.cu" | grep -c "$(sed -nE '/mma\.sync/{x;p;d};/^static .* (emit_[0-9]+)\(.*/{s//\1(/;h}' "$work/gmm.cu" | head -1)")
  ptx=$(grep -c 'mma\.sync' "$work/gmm.ptx")
  [ "$text" -gt 0 ] && [ "$text" -eq "$ptx" ] && good || bad "$ptx matrix instructions in PTX, $text planned"
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
