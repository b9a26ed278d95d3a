#!/usr/bin/env bash
# What takes longer than a second says so on a terminal, in one line that is gone at the end; and nowhere else.
set -u
export PATH="$(realpath "$1"):$PATH" LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED: $1"; failed=1; }
slow=(isamap sim examples/i8/gmm.isam -m edge16)
stopped() { echo "$* >$work/out2 & p=\$!; sleep 0.1; kill -STOP \$p; sleep 1.1; kill -CONT \$p; wait \$p"; } # slow wherever this runs
"${slow[@]}" >"$work/out" 2>"$work/err" || fail "status $?"
[ -s "$work/err" ] && fail "without a terminal something is said: $(cat -v "$work/err")"
if command -v script >/dev/null; then
  script -qec "$(stopped "${slow[@]}")" "$work/terminal" >/dev/null || fail "status $? on a terminal"
  grep -q $'\033\[K[a-z][a-z]*, [0-9]\{1,3\} s' "$work/terminal" || fail "no line on the terminal: $(cat -v "$work/terminal")"
  grep -v '^Script' "$work/terminal" | tr -d '\n' | grep -q $'\r\033\[K$' || fail "the line stays: $(cat -v "$work/terminal")"
  diff <(grep cycles "$work/out" | sed 's/ (.*//') <(grep cycles "$work/out2" | sed 's/ (.*//') || fail "other results"
  if grep -qw avx2 /proc/cpuinfo; then # 20 columns are the fewest that count: 10 letters of what is done
    script -qec "stty cols 20; $(stopped isamap check --execute machines/cpu-avx2.xml)" "$work/terminal" >/dev/null || fail "status $? on 20 columns"
    grep -q $'\033\[K\(reading em\|executing \), [0-9]\{1,3\} s' "$work/terminal" || fail "not cut to 20 columns: $(cat -v "$work/terminal")"
  fi
  script -qec "isamap check examples/i8/c2d.isam >/dev/null" "$work/terminal" >/dev/null
  grep -q $'\033' "$work/terminal" && fail "what is quick says something"
fi
[ $failed -eq 0 ] && echo "progress: shown, and gone at the end"
exit $failed
