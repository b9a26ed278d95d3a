#!/usr/bin/env bash
# The modules of VDLA, with the package of its machine file, without a warning.
set -euo pipefail
command -v verilator >/dev/null || { echo "skipped: no verilator"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1/isamap" show machines/vdla.xml -o "$work/vdla_pkg.sv" >/dev/null
modules=()
for f in sim/vdla/rtl/*.sv; do [ "$f" = sim/vdla/rtl/vdla_types.sv ] || modules+=("$f"); done
verilator --lint-only -Wall --top-module vdla sim/vdla/rtl/lint.vlt "$work/vdla_pkg.sv" sim/vdla/rtl/vdla_types.sv "${modules[@]}"
