#!/usr/bin/env bash
# Quantised ResNet-18 layers on the simulated matrix engine of machines/edge16.xml, without values:
#   bash bench/edge16.sh [BUILD]
# cycles predicted (`cost` of the schedule) and simulated; bound: 256 MACs and one row of 16 requantised results a cycle, or the
# port's bytes where that takes longer; share: of the bound, and of the MACs alone; bytes moved, beside those of each operand once.
set -eu
build=${1:-build}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cat >"$out/conv.isam" <<'KERNEL'
kernel conv(C=64, H=56, K=64, R=3, T=1, D=1, P=56) {
  in I: i8[1, C, H, H]  const F: i8[K, C, R, R]  out O: i8[1, K, P, P]  temp a: i32[1, K, P, P]
  axes n: 1, k: K, p: P, q: P, c: C, r: R, s: R
  a[n,k,p,q]  = 0
  a[n,k,p,q] += i32(I[n,c,T*p+r-D,T*q+s-D else 0]) * i32(F[k,c,r,s])
  O[n,k,p,q] = i8(clip(round(f64(a[n,k,p,q]) * 0.0078125), -128, 127))
}
KERNEL
field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$out/result.json" | head -1; }
printf '%-10s %10s %10s %10s %7s %7s %6s %9s %9s %8s\n' layer predicted simulated bound share MACs nodes bytes once compile
while read -r name C H K R T P; do
  args="-m edge16 -D C=$C -D H=$H -D K=$K -D R=$R -D T=$T -D D=$((R / 2)) -D P=$P"
  "$build/isamap" sim "$out/conv.isam" $args --no-values --json >"$out/result.json"
  "$build/isamap" compile "$out/conv.isam" $args -o "$out/s.sched" >/dev/null
  cost=$(sed -n 's/^schedule .* cost \([0-9.]*\) .*/\1/p' "$out/s.sched")
  awk -v name="$name" -v cost="$cost" -v cycles="$(field cycles)" -v nodes="$(field schedule_nodes)" -v seconds="$(field compile_seconds)" \
    -v read="$(field dram_read_bytes)" -v written="$(field dram_write_bytes)" -v C="$C" -v H="$H" -v K="$K" -v R="$R" -v T="$T" -v P="$P" 'BEGIN {
      macs = K * P * P * C * R * R / 256; rows = K * P * P / 16; side = T == 1 ? P + R - 1 : P
      once = C * side * side + K * C * R * R + K * P * P
      bound = macs + rows > once / 8 ? macs + rows : once / 8
      printf "%-10s %10.0f %10.0f %10.0f %6.2f%% %6.2f%% %6d %9.0f %9.0f %6.3f s\n", name, cost, cycles, bound, 100 * bound / cycles,
        100 * macs / cycles, nodes, read + written, once, seconds }'
done <<'LAYERS'
rn18_c02 64 56 64 3 1 56
rn18_c05 64 56 128 1 2 28
rn18_c06 128 28 128 3 1 28
rn18_c08 128 28 256 1 2 14
rn18_c09 256 14 256 3 1 14
rn18_c11 256 14 512 1 2 7
rn18_c12 512 7 512 3 1 7
LAYERS
