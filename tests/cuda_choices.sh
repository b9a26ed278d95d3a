#!/usr/bin/env bash
# What the planner chooses for devices of CUDA, from products to an encoder block: tiles, grids, kernels, copies, and the cycles that the simulator finds for them.
set -u
[ "${ISAMAP_EVERY:-1}" = 1 ] || { echo "skipped: what is chosen, and how long it takes, is the same with sanitizers"; exit 0; }
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_MACHINE_PATH=machines
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }
# what a simulation says, without the time that launches take
cycles_of() { awk '/^cycles / { n = $2 + 0 } /^launches / { n -= $3 } END { print n }'; }

# a grid of two dimensions, and the price of its busiest instance
large="-D M=2048 -D N=2048 -D K=2048"
# shellcheck disable=SC2086
isamap compile examples/bf16/gmm.isam $large -m gpu-sm80 -o "$work/gmm.sched" >/dev/null
grep -q 'parallel row' "$work/gmm.sched" && grep -q 'parallel cta' "$work/gmm.sched" && good || bad "no grid of two dimensions"
# shellcheck disable=SC2086
cycles=$(isamap sim examples/bf16/gmm.isam $large -m gpu-sm80 --no-values | sed -nE 's/^cycles +([0-9]+),.*/\1/p')
awk -v cost="$(sed -nE '1s/.* cost ([0-9.e+]+) .*/\1/p' "$work/gmm.sched")" -v cycles="$cycles" 'BEGIN { exit !(cost > cycles / 1.5 && cost < cycles * 1.5) }' && good || bad "predicted far from the $cycles simulated cycles"

# no more blocks than stand on the device: each takes several tiles, and nobody waits between them. Copies for the next tile begin while the last is stored
isamap compile examples/bf16/gmm.isam -m gpu-sm90 -D M=8960000 -D N=256 -D K=192 -o "$work/tall.cu" >/dev/null
[ "$(grep -c 'tiles, in turns' "$work/tall.cu")" -eq 2 ] && [ "$(grep -c -e __syncthreads -e 'bar\.sync' "$work/tall.cu")" -eq 1 ] && good || bad "barriers between tiles: $(grep -e bar.sync -e __syncthreads -e turns "$work/tall.cu")"
rows='-D M=512 -D N=768 -D K=448'
# shellcheck disable=SC2086
isamap compile examples/bf16/gmm.isam -m gpu-sm90 $rows --record "$work/rows" -o "$work/rows.sched" >/dev/null
# shellcheck disable=SC2086
isamap compile examples/bf16/gmm.isam -m gpu-sm90 $rows --param BLOCKS=3 --approach heuristic --decisions "$work/rows" -o "$work/rows.cu" >/dev/null
[ "$(grep -c 'tiles, in turns' "$work/rows.cu")" -eq 2 ] && grep -q 'if (turn == blockIdx.x) { /\* push freed' "$work/rows.cu" && grep -q 'if (turns - turn <= gridDim.x) { /\* pop freed' "$work/rows.cu" && good || bad "tiles in turns: $(grep -E 'turn' "$work/rows.cu")"

# as many slots as fit where what comes takes long: 3 of 48 KiB before, with which an H200 took a tenth longer
isamap compile examples/bf16/gmm.isam -m gpu-sm90 -D M=4096 -D N=4096 -D K=4096 -o "$work/gmm.sched" >/dev/null
[ "$(grep -c 'in smem at .* slots 4 local' "$work/gmm.sched")" -eq 2 ] && [ "$(grep -c 'issue tma.bf16' "$work/gmm.sched")" -eq 2 ] && good || bad "copies of 4096: $(grep -E 'in smem|issue' "$work/gmm.sched")"

# tiles small enough that most multiprocessors have one: 128x256 takes 22,214 cycles
cycles=$(isamap sim examples/bf16/gmm.isam -m gpu-sm90 -D M=1024 -D N=1024 -D K=1024 --no-values | cycles_of)
[ "$cycles" -lt 15000 ] && good || bad "a product of 1024 takes $cycles cycles"

# long sums where tiles are few: parts of them in different blocks, which are added in the end. Before: 279002, 739169, 25535 cycles
while read -r parts least sizes; do
  # shellcheck disable=SC2086
  cycles=$(isamap sim examples/bf16/gmm.isam -m gpu-sm90 $sizes --no-values --record "$work/record" | cycles_of)
  grep -q "rewrite \"parts of 'C'\" \"$parts\"" "$work/record" && [ "$cycles" -lt "$least" ] && good || bad "a product of $sizes takes $cycles cycles: $(grep parts "$work/record")"
done <<'LIST'
16 70000 -D M=512 -D N=512 -D K=32768
128 21000 -D M=128 -D N=128 -D K=65536
32 11000 -D M=64 -D N=1024 -D K=4096
LIST
# not where meeting for the sum takes longer than what is won, nor where floats must keep their order
isamap compile examples/bf16/gmm.isam -m gpu-sm90 -D M=1024 -D N=1024 -D K=1024 --record "$work/record" -o "$work/small.sched" >/dev/null && grep -q "parts of 'C'\" \"keep\"" "$work/record" && good || bad "a product with enough tiles is made in parts: $(grep parts "$work/record")"
isamap compile examples/bf16/gmm.isam -m gpu-sm90 -D M=512 -D N=512 -D K=32768 --allow exact --record "$work/record" -o "$work/small.sched" >/dev/null && ! grep -q "parts of" "$work/record" && good || bad "sums of floats are reordered: $(grep parts "$work/record")"

# rewrites are found beside many instructions of one kind; on the fallback this takes 2,319,124 cycles
cycles=$(isamap sim examples/operators/sep.isam -m gpu-sm90 --no-values 2>/dev/null | cycles_of)
[ "$cycles" -lt 66000 ] && good || bad "a separable convolution takes $cycles cycles"

# a bias, a residual and ReLU stay in the registers of the sums: one kernel, with a grid
for program in biased residual; do
  isamap compile tests/data/cuda/$program.isam -m gpu-sm80 -o "$work/$program.cu" >/dev/null
  kernels=$(grep -c __global__ "$work/$program.cu")
  [ "$kernels" -eq 1 ] && grep -q 'blockIdx.y' "$work/$program.cu" && good || bad "$program: $kernels kernels, or no grid"
done

# so they do in those of matrix units, where they are narrowed as they are stored too
for machine in gpu-sm80 gpu-sm90; do
  # shellcheck disable=SC2086
  isamap compile tests/data/cuda/epilogue.isam $large -m $machine -o "$work/epilogue.cu" >/dev/null
  kernels=$(grep -c __global__ "$work/epilogue.cu")
  [ "$kernels" -eq 1 ] && grep -q 'cvt\.rn\.bf16x2' "$work/epilogue.cu" && good || bad "epilogue on $machine: $kernels kernels, or nothing is narrowed"
done

# softmax stays in one kernel, its rows in the blocks, of which ten have room on a multiprocessor; with four of them it took 146,384 cycles
while read -r machine least; do
  isamap compile examples/f32/softmax.isam -D M=4096 -D N=4096 -m "$machine" -o "$work/softmax.cu" >/dev/null
  kernels=$(grep -c __global__ "$work/softmax.cu")
  cycles=$(isamap sim examples/f32/softmax.isam -D M=4096 -D N=4096 -m "$machine" --no-values | cycles_of)
  [ "$kernels" -eq 1 ] && grep -q '__launch_bounds__(32, 10)' "$work/softmax.cu" && [ "$cycles" -lt "$least" ] && good || bad "softmax on $machine: $kernels kernels, $cycles cycles"
done <<'LIST'
gpu-sm80 92000
gpu-sm90 67000
LIST

# a product with a vector reads its matrix once, on lanes, and writes nothing but sums; with products that pass through memory it took 358,858 cycles
cycles=$(isamap sim examples/f32/gmm.isam -D M=16384 -D N=1 -D K=16384 -m gpu-sm90 --no-values | cycles_of)
[ "$cycles" -lt 225000 ] && good || bad "a product with a vector takes $cycles cycles"

# f32 from shared memory rather than straight through the caches, where an H200 takes four times as long; small tiles where large ones are too few
while read -r program instruction least sizes; do
  # shellcheck disable=SC2086
  out=$(isamap sim $program $sizes -m gpu-sm90 --no-values --no-check)
  cycles=$(cycles_of <<<"$out")
  grep -q "^MACs *$instruction 100 %" <<<"$out" && [ "$cycles" -lt "$least" ] && good || bad "$program $sizes takes $cycles cycles: $(grep MACs <<<"$out")"
done <<'LIST'
bench/gemm.isam lanes.64x128 25000 -D M=256 -D N=256 -D K=256
bench/gemm.isam lanes.64x128 46500 -D M=512 -D N=512 -D K=512
bench/conv2d.isam lanes.128x128 2950000 -D N=128 -D C=128 -D K=128 -D H=58 -D W=58 -D stride=2 -D pad=0
LIST

# layers that differ in their arrays alone: one kernel
isamap compile tests/data/cuda/layers.isam -m gpu-sm80 -o "$work/layers.cu" >/dev/null
kernels=$(grep -c __global__ "$work/layers.cu")
[ "$kernels" -eq 1 ] && good || bad "three equal layers are $kernels kernels"

# statements that follow each other point by point are one kernel, others are not; all steps of a small recurrence are one
isamap compile tests/data/cuda/along.isam -m gpu-sm80 -o "$work/along.cu" >/dev/null
kernels=$(grep -c __global__ "$work/along.cu")
[ "$kernels" -eq 2 ] && good || bad "elementwise statements are $kernels kernels"
isamap compile examples/f32/gru.isam -m gpu-sm80 -o "$work/gru.cu" >/dev/null 2>&1
kernels=$(grep -c __global__ "$work/gru.cu")
[ "$kernels" -eq 1 ] && good || bad "a small recurrence is $kernels kernels"

# copies of windows: each element has a thread, though indices are sums of several axes; the numbers of so few points have 32 bits. Sums read ahead
isamap compile examples/operators/c3d.isam -m gpu-sm90 -D N=1 -D C=18 -D K=20 -D D=3 -D P=3 -D Q=17 -o "$work/c3d.cu" >/dev/null 2>&1
grep -q 'for (uint32_t x = ' "$work/c3d.cu" && ! grep -qE 'for \(int64_t x[0-9]* = ' "$work/c3d.cu" && good || bad "copies of windows: $(grep 'for (.*x' "$work/c3d.cu")"
printf 'kernel sums(M=64, N=96) { in X: f64[M,N] out Y: f64[M] axes i: M, j: N\n Y[i] = 0\n Y[i] += X[i,j]\n}' >"$work/sums.isam"
isamap compile "$work/sums.isam" -m gpu-sm90 -o "$work/sums.cu" >/dev/null 2>&1
[ "$(grep -c 'pragma unroll 16' "$work/sums.cu")" -eq 1 ] && good || bad "sums do not read ahead"

# the inner loop of a product on lanes reads for several turns at once
isamap compile examples/f32/gmm.isam -m gpu-sm80 -o "$work/lanes.cu" >/dev/null && grep -A2 'pragma unroll 4$' "$work/lanes.cu" | grep -q 'emit_[0-9]*_fma_16x32' && good || bad "a product on lanes waits for each read"

# queues that nothing else keeps in order: a kernel ends between their nests, where a kernel of the fallback lies between them too
isamap compile examples/operators/att.isam -m gpu-sm80 -o "$work/att.sched" >/dev/null && [ "$(grep -c 'pop launch' "$work/att.sched")" -eq 4 ] && good || bad "attention's nests do not meet four times"

# an encoder block: an instruction that waits for the end of the kernel before it begins one, and queues that only wait for one another are none
isamap compile tests/data/cuda/encoder.isam -m gpu-sm90 -o "$work/encoder.cu" >/dev/null 2>&1
isamap compile tests/data/cuda/encoder.isam -m gpu-sm90 -o "$work/encoder.sched" >/dev/null 2>&1
kernels=$(grep -c __global__ "$work/encoder.cu")
grep -q 'axes (.*pop launch' "$work/encoder.sched" && ! grep -q 'here a kernel ends' "$work/encoder.cu" && [ "$kernels" -eq 17 ] && good || bad "an encoder block: $kernels kernels, or text of a barrier in one"

# the clock counts a launch for each kernel, not for each statement of the fallback
for program in tests/data/cuda/along.isam tests/data/cuda/twice.isam examples/f32/gru.isam; do
  isamap compile $program -m gpu-sm90 $(case $program in *gru*) echo -D T=6 ;; esac) -o "$work/launches.cu" >/dev/null 2>&1
  kernels=$(grep -c __global__ "$work/launches.cu")
  launches=$(isamap sim $program -m gpu-sm90 $(case $program in *gru*) echo -D T=6 ;; esac) 2>/dev/null | sed -n 's/^launches *\([0-9]*\),.*/\1/p')
  [ "$launches" = "$kernels" ] && good || bad "$program: $launches launches counted, $kernels kernels"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
