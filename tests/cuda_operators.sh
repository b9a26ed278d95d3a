#!/usr/bin/env bash
# All of examples/operators, the digits network, an encoder block and a GRU on the machines with CUDA kernels.
# Where NVRTC is: cubins without spills, registers within the machine's; in machine code as many matrix instructions as planned, for each tile.
# Where a C++ compiler is: operators, shrunk, and the encoder block executed by the driver of tests/cuda, and compared with the interpreter.
# shellcheck disable=SC2086
set -u
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# what is written as text and as a cubin is planned once
export ISAMAP_MACHINE_PATH=machines ISAMAP_CACHE=$work/cache ISAMAP_CACHE_SIZE=100M
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }
. tests/cuda/emulator.sh
. tests/cuda/sample.sh
. tests/cuda/toolkit.sh

# MACHINE PROGRAM [SIZES]
cubin() {
  local machine=$1 program=$2 kernels
  shift 2
  isamap compile "$program" -m "$machine" "$@" -o "$work/x.cubin" >"$work/log" 2>"$work/errors" || { bad "$machine $program: $(cat "$work/errors")" && return; }
  isamap compile "$program" -m "$machine" "$@" -o "$work/x.cu" >/dev/null 2>&1
  kernels=$(grep -c '^kernel ' "$work/log")
  [ "$kernels" -gt 0 ] && [ "$kernels" -eq "$(grep -c __global__ "$work/x.cu")" ] && good || bad "$machine $program: $kernels kernels are reported"
  grep '^kernel ' "$work/log" | grep -v ' 0 bytes spilled, 0 on the stack' && bad "$machine $program spills" || good
  grep -q 'cannot start' "$work/errors" && bad "$machine $program: $(grep 'cannot start' "$work/errors")" || good
  planned "$work/x.cu" >"$work/planned"
  [ -n "$nvdisasm" ] && [ -s "$work/planned" ] || return
  found "$work/x.cubin" >"$work/found"
  as_planned "$work/planned" "$work/found" && good || bad "$machine $program: of matrix instructions, $(tr '\n' ' ' <"$work/planned")planned, $(tr '\n' ' ' <"$work/found")found"
  matrix=$((matrix + $(wc -l <"$work/found")))
}

matrix=0
if isamap compile examples/operators/gmm.isam -m gpu-sm80 -o "$work/x.cubin" >/dev/null 2>"$work/errors"; then
  for machine in gpu-sm80 gpu-sm90; do
    for program in examples/operators/*.isam examples/f32/gru.isam tests/data/cuda/encoder.isam; do cubin $machine "$program"; done
    for program in examples/digits/*.onnx; do cubin $machine "$program" -D N=64; done
  done
  [ -z "$nvdisasm" ] || [ $matrix -gt 40 ] && good || bad "only $matrix kernels with matrix instructions"
  # more registers than the block has
  mkdir "$work/machines" && cp machines/*.xml "$work/machines/" && sed -i 's/pool="cta 256K"/pool="cta 64K"/' "$work/machines/mma-block.xml"
  isamap compile examples/operators/att.isam -m "$work/machines/gpu-sm80.xml" -o "$work/x.cubin" 2>&1 | grep -q "kernel 'att_0' cannot start: its 192 threads have .* more than the block's 65536 bytes" && good || bad "registers beyond the machine's are not told"
elif grep -q 'there is no NVRTC' "$work/errors"; then
  echo "no NVRTC: no cubins"
else
  bad "gmm.cubin: $(cat "$work/errors")"
fi
[ -n "$nvdisasm" ] || echo "no nvdisasm: machine code is not read"

if command -v c++ >/dev/null; then
  emulator "$work" || bad "the emulated device does not build"
  mkdir "$work/list"
  while read -r machine program sizes; do
    out=$(LD_LIBRARY_PATH=$work timeout 200 isamap run "$program" -m "$machine" --verify $sizes 2>&1)
    case $out in *"verified    yes"*) good ;; *) bad "$machine $program $sizes: $out" ;; esac
  done < <({ scripts/operators --list "$work/list" gpu-sm90:f16,f16,f32 c1d c2d t2d att && echo gpu-sm90 tests/data/cuda/encoder.isam -D T=64 -D D=128 -D F=256; } | sampled)
else
  echo "no C++ compiler: values are not compared"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
