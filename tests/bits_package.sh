#!/usr/bin/env bash
# The SystemVerilog package of every machine with bit fields: known constants, and what Verilator (where it is there) says.
set -u
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; cat "$work/log"; failed=$((failed + 1)); fi; }
for file in $(grep -l 'as="bits"' machines/*.xml tests/data/machines/*.xml); do
  name=$(sed -nE 's/.*<machine name="([^"]+)".*/\1/p' "$file" | head -1)
  check "$file" "$build/isamap" show "$file" -o "$work/${name}_pkg.sv"
  echo "module top import ${name}_pkg::*; (output logic ok); assign ok = 1'b1; endmodule" >"$work/top.sv"
  if command -v verilator >/dev/null; then
    check "lint of $file" verilator --lint-only -Wall -Wno-UNUSED --top-module top "$work/${name}_pkg.sv" "$work/top.sv"
  fi
done
isamap=$build/isamap tiny=tests/data/machines/tiny.xml
"$isamap" show $tiny -o "$work/tiny.sv"
for line in 'localparam int LD__N_AT = 42, LD__N_BITS = 8;' "localparam logic [1:0] ADD__AT0 = 2'd2;" \
  "localparam logic [63:0] ADD_MASK = 64'hfffffff000000003" 'logic [13:0] s_4; // s/4' 'localparam int MEMORY_PAD_WORDS = 256;'; do
  check "tiny: $line" grep -F "$line" "$work/tiny.sv"
done
"$isamap" show $tiny --param SIZE=8K -o "$work/tiny.sv"
check "a parameter" grep -F 'localparam int MEMORY_PAD_WORDS = 512;' "$work/tiny.sv"
sed 's/<word at="0x08"/<word at="0"/' machines/vdla.xml >"$work/zero.xml"
"$isamap" show "$work/zero.xml" -o "$work/zero.sv"
check "address 0" grep -F 'localparam int BEGIN_0_ADDRESS = 0;' "$work/zero.sv"
check "no bit fields" bash -c "! $isamap show machines/cpu-scalar.xml -o $work/no.sv"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 6 ]
