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
check "a value out of range" "$isamap" sweep "$work/g.isam" -m machines/edge16.xml --set SPAD=1,16K -o "$work/e.csv"
check "its reason" grep -q "^1,,,,,0,\"parameter 'SPAD' is 1, expected a value in its range" "$work/e.csv"
check "no parameter" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml"
check "no range" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml --set SPAD=64K..16K"
check "another suffix" bash -c "! $isamap sweep $work/g.isam -m machines/edge16.xml --set SPAD=16K -o $work/s.txt"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 10 ]
