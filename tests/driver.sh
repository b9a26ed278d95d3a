#!/usr/bin/env bash
# The driver in examples/driver, with a process in the board's place that runs the words on the model in RTL: the interpreter's
# values, the model's cycles, and what is said where there is no board.
set -u
build=$1
isamap=$build/isamap
export ISAMAP_CACHE=$build/driver
models=$build/driver-models # of this test alone: the newest is the one
work=$(mktemp -d)
board=
trap '[ -z "$board" ] || kill "$board" 2>/dev/null; rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; tail -20 "$work/log"; failed=$((failed + 1)); fi; }
sed "s#model=\"../sim/vdla\"#model=\"$PWD/examples/driver\"#" machines/vdla.xml >"$work/driven.xml"
size=(-D M=45 -D N=37 -D K=53)
check "no board" bash -c "$isamap sim examples/i8/gmm.isam -m $work/driven.xml --rtl ${size[*]} 2>&1 | grep -q 'VDLA_REGISTERS'"
if ! command -v verilator >/dev/null; then
  echo "no verilator: $passed passed, $failed failed"
  exit $failed
fi
export VDLA_REGISTERS=$work/registers VDLA_MEMORY=$work/memory VDLA_MEMORY_BYTES=$((64 << 20))
truncate -s 4096 "$VDLA_REGISTERS"
truncate -s "$VDLA_MEMORY_BYTES" "$VDLA_MEMORY"
[ "$(ls "$models" 2>/dev/null | wc -l)" -le 1 ] || rm -rf "$models"
model=$(ISAMAP_CACHE=$models "$isamap" sim examples/i8/gmm.isam -m vdla --rtl "${size[@]}" --json | tr ',' '\n' | sed -nE 's/.*"cycles": *([0-9.e+]+).*/\1/p' | head -1)
check "a fake board" cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. tests/data/driver/board.c -o "$work/board" -ldl
"$work/board" "$(ls -t "$models"/vdla-*.so | head -1)" "$VDLA_REGISTERS" "$VDLA_MEMORY" "$VDLA_MEMORY_BYTES" 2>"$work/said" &
board=$!
check "values" bash -c "$isamap sim examples/i8/gmm.isam -m $work/driven.xml --rtl --verify ${size[*]} --json | tr ',' '\n' >$work/json; grep -q '\"verified\": *true' $work/json"
check "the board's cycles" grep -qE "\"cycles\": *$model\$" "$work/json"
check "several launches" bash -c "$isamap sim examples/i8/att.isam -m $work/driven.xml --rtl --verify | grep -q 'verified *yes'"
check "what a board cannot change" bash -c "! $isamap sim examples/i8/gmm.isam -m $work/driven.xml --rtl --latencies 20..50 ${size[*]} 2>$work/said2 && grep -q 'cannot be set on a board' $work/said2"
check "too little memory" bash -c "! VDLA_MEMORY_BYTES=4096 $isamap sim examples/i8/gmm.isam -m $work/driven.xml --rtl ${size[*]} 2>$work/said3 && grep -q 'no room' $work/said3"
cat "$work/said"
echo "$passed passed, $failed failed"
exit $failed
