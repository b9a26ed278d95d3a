#!/usr/bin/env bash
# The cuda backend without a GPU. NVRTC and the driver are replaced by tests/cuda: kernels are compiled by the host's C++ compiler and executed thread by thread,
# launches and copies included, and the values compared with the interpreter's.
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

isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/gmm.cu" >/dev/null && grep -q '__global__ void __launch_bounds__(32, 1) gmm_0(unsigned char \*const p_' "$work/gmm.cu" && good || bad "no kernel in gmm.cu"
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  message=$(isamap run examples/f32/gmm.isam -m gpu-sm80 2>&1)
  status=$?
  case $status$message in 1*"no driver for one here"*) good ;; *) bad "run without a driver ends with $status: $message" ;; esac
fi

message=$(isamap bench examples/f32/gmm.isam -m host --vs cublas 2>&1) && bad "cuBLAS is a peer of this processor"
case $message in *"'cublas' works on a CUDA device"*) good ;; *) bad "wrong message: $message" ;; esac
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  message=$(isamap bench examples/f32/gmm.isam -m gpu-sm80 --vs cublas,cudnn 2>&1) && bad "peers without a driver"
  case $message in *"cublas: there is no CUDA driver here"*) good ;; *) bad "wrong message: $message" ;; esac
fi

cc -shared -fPIC -x c /dev/null -o "$work/libnvrtc.so"
message=$(LD_LIBRARY_PATH=$work isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/gmm.cubin" 2>&1) && bad "a library without functions is taken for NVRTC"
case $message in *"NVRTC has no 'nvrtcCreateProgram'"*) good ;; *) bad "wrong message: $message" ;; esac

if command -v c++ >/dev/null; then
  emulator "$work" || bad "the emulated device does not build"
  # a column says what part of the products must be on which instruction
  while read -r machine program instruction sizes; do
    # shellcheck disable=SC2086
    out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run "$program" -m "$machine" --verify $sizes 2>&1)
    case $out in *"verified    yes"*) ;; *) bad "$program: $out" && continue ;; esac
    case $out in *", 1 ms of it on the device, predicted"*) ;; *) bad "$program: no time of the device: $out" && continue ;; esac
    case $out in *"$instruction"*) good ;; *) bad "$program: not '$instruction': $out" ;; esac
  done < <(sampled <<'LIST'
gpu-sm80 examples/f32/gmm.isam fma.16x32 -D M=48 -D N=64 -D K=20
gpu-sm80 examples/bf16/gmm.isam block.64x64.rows.bf16 -D M=17 -D N=9 -D K=20
gpu-sm80 examples/bf16/gmm.isam block. -D M=256 -D N=128 -D K=320
gpu-sm80 examples/i8/c2d.isam m16n8k32.i8 -D N=1 -D C=20 -D K=18 -D P=4 -D Q=9
gpu-sm80 examples/f32/softmax.isam fallback -D M=7 -D N=33
gpu-sm80 examples/f32/softmax.isam add.across.row -D M=64 -D N=4096
gpu-sm80 examples/f32/softmax.isam exp.row -D M=32 -D N=1531
gpu-sm90 examples/f32/softmax.isam exp.row -D M=64 -D N=1040
gpu-sm80 examples/f32/layernorm.isam mul.row -D M=96 -D N=1040
gpu-sm80 examples/f32/gmv.isam dot.across.row -D M=1024
gpu-sm90 examples/f32/gmm.isam dot.across.row -D M=70 -D N=1 -D K=1000
gpu-sm80 examples/f32/layernorm.isam fallback -D M=5 -D N=40
gpu-sm80 examples/digits/digits-int8.onnx m16n8k32.i8 -D N=8
gpu-sm80 examples/f32/gru.isam fallback -D H=16 --size T=3
LIST
  )
  # tails: kernels of their own, in which roles and tokens begin anew
  while read -r machine type instruction sizes; do
    printf '# decisions: QUESTION "SUBJECT" "ANSWER"\ncover "stmt 1 C" "%s"\n' "$instruction" >"$work/decisions"
    # shellcheck disable=SC2086
    out=$(LD_LIBRARY_PATH=$work timeout 60 isamap run "examples/$type/gmm.isam" -m "$machine" --verify --approach heuristic --decisions "$work/decisions" $sizes 2>&1)
    case $out in *"verified    yes"*"$instruction"*) good ;; *) bad "$machine $type $sizes: $out" ;; esac
  done < <(sampled <<'LIST'
gpu-sm80 bf16 m16n8k16.bf16 -D M=35 -D N=24 -D K=33
gpu-sm80 bf16 block.64x64.bf16 -D M=200 -D N=140 -D K=72
gpu-sm80 i8 block.128x128.i8 -D M=200 -D N=130 -D K=144
gpu-sm90 bf16 wgmma.128x256.rows.bf16 -D M=128 -D N=256 -D K=128
gpu-sm90 i8 wgmma.128x64.i8 -D M=384 -D N=256 -D K=144
gpu-sm90 f32 lanes.64x128 -D M=132 -D N=260 -D K=72
gpu-sm90 f32 lanes.128x128 -D M=36 -D N=100 -D K=52
gpu-sm90 f32 lanes.128x256 -D M=130 -D N=257 -D K=33
LIST
  )
else
  echo "no C++ compiler: values are not compared"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
