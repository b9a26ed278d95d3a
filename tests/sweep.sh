#!/usr/bin/env bash
# isamap sweep: one row a point, points that cannot be with their reason, a picture that is XML.
set -u
isamap=$1/isamap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; cat "$work/log"; failed=$((failed + 1)); fi; }
cat >"$work/g.isam" <<'END'
kernel g(M=32, N=32, K=32) {
  in A: i8[M,K]  const B: i8[N,K]  out C: i32[M,N]
  axes i: M, j: N, k: K
  C[i,j] = 0
  C[i,j] += i32(A[i,k]) * i32(B[j,k])
}
END
check "a range and a list" "$isamap" sweep "$work/g.isam" -m machines/edge16.xml --set SPAD=16K..64K -o "$work/s.csv"
check "rows" test "$(wc -l <"$work/s.csv")" = 4
check "heading" grep -qx 'SPAD,cycles,utilisation,dram_read_bytes,dram_write_bytes,pareto,error' "$work/s.csv"
check "doublings" test "$(cut -d, -f1 "$work/s.csv" | tr '\n' ' ')" = 'SPAD 16384 32768 65536 '
check "somebody is not beaten" awk -F, '$6 == 1 { n++ } END { exit !(n >= 1) }' "$work/s.csv"
check "the least cycles are in front" awk -F, 'NR > 1 && (min == "" || $2 + 0 < min) { min = $2 + 0; front = $6 } END { exit front != 1 }' "$work/s.csv"
check "the picture" xmllint --noout "$work/s.svg"
check "a point for each" test "$(grep -c '<circle' "$work/s.svg")" = 3
# Where each point stands, from the rows: logarithmic from sixteen times the least value on; y up to the most cycles.
cat >"$work/stand.awk" <<'END'
NR > 1 { v[NR] = $1; c[NR] = $2; ok[NR] = $2 != ""; front[NR] = $6; if (NR == 2 || $1 + 0 < lo) lo = $1; if ($1 + 0 > hi) hi = $1; if ($2 + 0 > most) most = $2 }
END {
  if (most < 1) most = 1
  for (i = 2; i <= NR; i++) if (ok[i]) {
    far = hi >= 16 * lo ? log(v[i] / lo) / log(hi / lo) : hi > lo ? (v[i] - lo) / (hi - lo) : -1
    printf "%.1f %.1f %d\n", far < 0 ? 340 : 80 + 520 * far, 340 - 290 * c[i] / most, front[i]
  }
}
END
stands() { # CSV SVG
  awk -F, -f "$work/stand.awk" "$1" >"$work/rows"
  sed -n 's/^<circle cx="\([0-9.-]*\)" cy="\([0-9.-]*\)" r="4" stroke="#[0-9a-f]*" fill="\(white\|#[0-9a-f]*\)"\/>/\1 \2 \3/p' "$2" | sed 's/white$/0/; s/#[0-9a-f]*$/1/' >"$work/circles"
  sed -n 's/^<polyline fill="none" stroke="#[0-9a-f]*" points="\(.*\)"\/>/\1/p' "$2" | tr ' ' '\n' | tr ',' ' ' | sed '/^$/d' >"$work/line"
  [ -s "$work/rows" ] && diff "$work/rows" "$work/circles" && diff <(cut -d' ' -f1,2 "$work/rows") "$work/line"
}
check "where points stand" stands "$work/s.csv" "$work/s.svg"
for set in SPAD=16K SPAD=16K,32K,40K SPAD=16K..256K SPAD=16K,24K,255K SPAD=8K,16K,1M,512K RATE=4..64 RATE=64,5,4,32; do
  machine=edge16 && [ ${set%=*} = RATE ] && machine=vdla
  check "a sweep over $set" "$isamap" sweep "$work/g.isam" -m machines/$machine.xml --set $set -o "$work/w.csv"
  check "where points of $set stand" stands "$work/w.csv" "$work/w.svg"
done
check "two parameters" "$isamap" sweep "$work/g.isam" -m machines/vdla.xml --set RATE=4,64 --set LAT=10,100,1000 -o "$work/two.csv"
check "a row for each pair" test "$(tail -n +2 "$work/two.csv" | cut -d, -f1,2 | tr '\n' ' ')" = '4,10 4,100 4,1000 64,10 64,100 64,1000 '
check "a line for each choice of the second" test "$(grep -c '<polyline' "$work/two.svg")" = 3
check "their names" test "$(grep -o 'LAT=[0-9]*' "$work/two.svg" | tr '\n' ' ')" = 'LAT=10 LAT=100 LAT=1000 '
check "a longer latency takes more cycles" awk -F, 'NR > 1 { if (NR % 3 != 2 && $3 + 0 < last) bad = 1; last = $3 + 0 } END { exit bad || NR != 7 }' "$work/two.csv"
check "values beside --param" "$isamap" sweep "$work/g.isam" -m machines/vdla.xml --param RATE=64 --set RATE=4,64 -o "$work/given.csv"
check "the same parameter twice" "$isamap" sweep "$work/g.isam" -m machines/vdla.xml --set RATE=8 --set RATE=4,64 -o "$work/twice.csv"
"$isamap" sweep "$work/g.isam" -m machines/vdla.xml --set RATE=4,64 -o "$work/rate.csv" >"$work/log"
check "what is swept counts" cmp "$work/given.csv" "$work/rate.csv"
check "what was said last counts" cmp "$work/twice.csv" "$work/rate.csv"
check "a value out of range" "$isamap" sweep "$work/g.isam" -m machines/edge16.xml --set SPAD=1,16K -o "$work/e.csv"
check "where the others stand" stands "$work/e.csv" "$work/e.svg"
check "its reason" grep -q "^1,,,,,0,\"parameter 'SPAD' is 1, expected a value in its range" "$work/e.csv"
check "no parameter" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml"
check "no range" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml --set SPAD=64K..16K"
check "another suffix" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml --set SPAD=16K -o $work/s.txt"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 10 ]
