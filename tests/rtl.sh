#!/usr/bin/env bash
# Compiled programs on the model in RTL that the machine file names: the interpreter's values, and the cycles that the machine
# file says. Needs Verilator; the model is built once for the build folder.
set -u
build=$1
isamap=$build/isamap
export ISAMAP_CACHE=$build/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; tail -20 "$work/log"; failed=$((failed + 1)); fi; }
check "a machine without a model" bash -c "$isamap sim examples/i8/gmm.isam -m edge16 -D M=16 -D N=16 -D K=16 --rtl 2>&1 | grep -q 'names no model'"
check "a machine without bits" bash -c "$isamap sim examples/i8/gmm.isam -m cpu-scalar -D M=16 -D N=16 -D K=16 --rtl 2>&1 | grep -q 'no instruction of'"
if ! command -v verilator >/dev/null; then
  echo "no verilator: $passed passed, $failed failed"
  exit $failed
fi
# Values, words and cycles within 2 % of the machine file's.
program() {
  "$isamap" sim "$@" -m vdla --rtl --verify --json >"$work/json" || return 1
  grep -o '"verified": *true' "$work/json" && grep -o '"model": *"rtl"' "$work/json" &&
    tr ',' '\n' <"$work/json" | sed -nE 's/.*"(cycles|machine_cycles)": *([0-9.e+]+).*/\1 \2/p' |
    awk '{ v[$1] = $2 } END { d = v["cycles"] - v["machine_cycles"]; if (d < 0) d = -d; print d, v["cycles"]; exit !(v["cycles"] > 0 && d <= 0.02 * v["cycles"]) }'
}
check "a product" program examples/i8/gmm.isam -D M=45 -D N=37 -D K=53
check "a scaled product" program examples/i8/gmm_scaled.isam
check "a convolution" program examples/i8/c2d.isam -D N=1 -D P=13 -D Q=18 -D C=20 -D K=35
check "a bottleneck" program examples/i8/bottleneck.isam -D H=9 -D W=11 -D C=40 -D K=32
check "a residual block" program examples/i8/residual.isam -D H=9 -D W=11 -D C=32
check "a network" program examples/digits/digits-int8.onnx -D N=3
# Cells whose states the device writes: no host in a step, and not a cycle apart.
cell() { ISAMAP_HOST=cpu-scalar program "examples/i8/$1.isam" -D H=48 -D T=3 | tail -1 | grep '^0 '; }
for k in rnn gru lstm; do check "a cell, $k" cell $k; done
# The counters of the model: each queue of the device, each sync, each bus, and the whole. The model counts how long syncs are
# waited for, not what they are given: the report leaves out those that nobody waits for, so sizes are such that each is.
figures() {
  "$isamap" sim examples/i8/residual.isam -m vdla -D H=11 -D W=13 -D C=48 "$@" |
    sed -nE '/^(queue|sync|bus|DRAM) /{/ (vec|bell[.]|done[.])/!s/, [0-9]+ given.*//;/ (vec|bell[.]|done[.])/!p}; s/^(cycles +[0-9]+).*/\1/p'
}
check "counters" diff <(figures --rtl) <(figures)
check "all of them" test "$(figures --rtl | wc -l)" = 10
check "other latency and bandwidth, the same model" program examples/i8/gmm.isam -D M=45 -D N=37 -D K=53 --param LAT=131 --param RATE=16
check "a board" bash -c "$isamap sim examples/digits/digits-int8.onnx -D N=3 -m vdla-board --rtl --verify | grep -q 'verified *yes'"
check "one model" test "$(ls "$ISAMAP_CACHE"/*.so | wc -l)" -ge 1
"$isamap" sim examples/i8/gmm.isam -m vdla --rtl -D M=45 -D N=37 -D K=53 --trace "$work/t.json" >/dev/null 2>&1
check "a trace" bash -c "grep -q '\"ph\":\"X\"' $work/t.json && test \$(grep -c thread_name $work/t.json) = 3"
# Machine file and RTL side by side: each instruction's start and end, bytes, values; at other latencies and bandwidths, and at
# random latencies.
agrees() {
  "$isamap" bench "$@" -m vdla --rtl --json >"$work/json" || return 1
  tr ',{}' '\n\n\n' <"$work/json" | awk -F'": *' '
    { gsub(/[" ]/, "", $1) }
    $1 == "verified" { rows++; bad += $2 != "true" }
    $1 == "instructions" { all += $2 }
    $1 == "instructions_apart" || $1 == "apart" { seen++; bad += $2 != 0 }
    $1 == "mean_latency_apart" { d = $2 < 0 ? -$2 : $2; bad += d > 0.02 }
    $1 == "dram_read_bytes" { read = $2 } $1 == "dram_write_bytes" { written = $2 }
    $1 == "rtl_dram_read_bytes" { bad += $2 != read } $1 == "rtl_dram_write_bytes" { bad += $2 != written }
    END { print rows, all, seen, bad; exit !(rows > 0 && all > 50 * rows && seen >= 2 * rows && bad == 0) }'
}
check "convolutions agree" agrees bench/smoke_i8.csv
check "at random latencies" agrees bench/resnet18_i8.csv --only rn18_c11 --latencies 20..200
check "at other latencies and bandwidths" agrees bench/resnet18_i8.csv --only rn18_c08 --latencies 20..200 --set RATE=12,32 --set LAT=33,200
check "a machine that is not simulated" bash -c "$isamap bench bench/smoke.csv -m cpu-scalar --rtl 2>&1 | grep -q 'not simulated but measured here'"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 2 ]
