#!/usr/bin/env bash
# Mistakes planted in VDLA's RTL, one at a time: random streams on machine file and RTL must see each (all_vdla.c passes
# without them). Models are compiled without optimisation, and kept for the build folder.
set -u
build=$(cd "$1" && pwd)
command -v verilator >/dev/null || { echo "skipped: no verilator"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/cxx" <<'END'
#!/bin/sh
exec $(command -v ccache) g++ "$@" -O0
END
chmod +x "$work/cxx"

# NAME FILE 's/PATTERN/REPLACEMENT/': the pattern must be there.
mutant() {
  local at=$work/$1
  mkdir -p "$at/machines" "$at/sim" "$at/backends"
  cp machines/vdla.xml "$at/machines/"
  cp -r sim/vdla "$at/sim/"
  cp backends/device.h "$at/backends/"
  sed -i "$3" "$at/sim/vdla/rtl/$2"
  if cmp -s "sim/vdla/rtl/$2" "$at/sim/vdla/rtl/$2"; then echo "FAILED: $1 changes nothing"; return; fi
  ISAMAP_MACHINE_PATH=$at/machines CXX=$work/cxx "$build/tests/test_all_vdla" random_streams_agree >"$at/log" 2>&1
  if grep -q 'simulator and RTL differ' "$at/log"; then
    echo "seen: $1"
  else
    echo "FAILED: $1 is not seen"
    tail -5 "$at/log"
  fi
}

{
  mutant no-wait-for-loads vdla.sv "s/!missing\[3\] && !missing\[0\]/!missing[3]/"
  mutant half-up dma_write.sv "s/(rest == half && whole\[0\])/rest == half/"
  mutant no-upper-bound dma_write.sv "s/whole > 32'(high)/whole > 32'(high) + 1/"
} >"$work/first" &
{
  mutant adds-always gemm.sv "s/overwrite ? '0 : old/overwrite \&\& load_wgt ? '0 : old/"
  mutant pad-moved walk.sv "s/ + 32'(box.x0);/;/"
  mutant a-cycle-late dma_read.sv "s/cycle_t'(latency) - 1/cycle_t'(latency)/"
} >"$work/second" &
wait
cat "$work/first" "$work/second"
[ "$(cat "$work/first" "$work/second" | grep -c '^seen: ')" = 6 ]
