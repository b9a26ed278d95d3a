#!/usr/bin/env bash
# What the command does with inputs that never end, without memory, on a full disk, and when it is told to stop: an error or the signal, at
# once, and no file half written or left behind. Usage: tests/bounded.sh BUILD
set -u
isamap=$1/isamap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
ok() { passed=$((passed + 1)); }
wrong() { echo "FAILED: $*"; failed=$((failed + 1)); }
small=(-D M=8 -D N=8 -D K=8)

# ---- inputs ----
expect() { # status, what the message says, arguments
  timeout 10 "$isamap" "${@:3}" >"$work/out" 2>"$work/err"
  local status=$?
  if [ $status -ne "$1" ]; then wrong "${*:3}: status $status, expected $1"; tail -3 "$work/err"; return; fi
  if ! grep -q -- "$2" "$work/err"; then wrong "${*:3}: no '$2' in its messages"; tail -3 "$work/err"; return; fi
  ok
}
mkfifo "$work/pipe"
for suffix in isam onnx xml sched npy bin csv; do
  ln -s pipe "$work/fifo.$suffix"
  ln -s /dev/zero "$work/zero.$suffix"
done
for kind in "fifo:a pipe" "zero:a device"; do
  file=$work/${kind%%:*} what=${kind#*:}
  expect 1 "$what" check "$file.isam"
  expect 1 "$what" check "$file.onnx"
  expect 1 "$what" check "$file.xml"
  expect 1 "$what" check "$file.sched" -m edge16
  expect 1 "$what" show "$file.bin" -m vdla
  expect 1 "$what" run tests/data/api/scale.isam --size T=4 --input "X=$file.npy"
  expect 1 "$what" run tests/data/api/scale.isam --size T=4 --decisions "$file.csv"
done
rows=$(seq -s ';' 0 399)
{
  printf '<machine name="x" xmlns="urn:isamap:machine:1">'
  for axis in a b c d; do printf '<for each="%s" in="%s">' $axis "$rows"; done
  printf '</for></for></for></for><memory id="dram"/></machine>\n'
} >"$work/rows.xml"
expect 1 "rows.xml:1: error: 'for' has more than" check "$work/rows.xml"
expect 1 "LLVM knows no processor 'nonsense'" compile tests/data/api/scale.isam -o "$work/x.so" --target nonsense
expect 1 "can run code for 'nonsense', expected one of .*'x86-64'" run tests/data/api/scale.isam --size T=4 --target nonsense

# ---- outputs ----
ln -s /dev/full "$work/Y.npy"
ln -s /dev/full "$work/t.json"
expect 6 "cannot write" run tests/data/api/scale.isam --size T=4 --output-dir "$work"
expect 6 "cannot write" sim examples/i8/gmm.isam -m edge16 "${small[@]}" --trace "$work/t.json"
expect 1 "cannot write" compile tests/data/api/scale.isam -o "$work/none/x.so"
expect 1 "cannot write" compile examples/i8/gmm.isam -m edge16 -o "$work/none/x.sched"
# places that are not there are named before any work
expect 1 "cannot write '$work/none': No such" run nothing.isam --output-dir "$work/none"
expect 1 "cannot write '.*README.md': Not a dir" sim nothing.isam --output-dir README.md
expect 1 "cannot write '$work/none/d'" run nothing.isam --record "$work/none/d"
expect 1 "cannot write '$work/none/t.json'" sim nothing.isam --trace "$work/none/t.json"
if "$isamap" map examples/i8/gmm.isam -m edge16 >/dev/full 2>"$work/err"; then wrong "results to /dev/full"; else ok; fi
grep -q "standard output" "$work/err" && ok || wrong "no message for /dev/full"
"$isamap" --version >/dev/full 2>/dev/null
[ $? -eq 6 ] && ok || wrong "--version to /dev/full: not status 6"
"$isamap" --version >&- 2>"$work/err"
[ $? -eq 1 ] && grep -q "standard output" "$work/err" && ok || wrong "--version without an output: not status 1"
mkdir "$work/limit"
for out in x.so x.sched x.ll; do
  (ulimit -f 1; "$isamap" compile examples/f32/gmm.isam -o "$work/limit/$out" >/dev/null 2>"$work/err")
  status=$?
  case $out:$status in *:6 | x.so:1) ok ;; *) wrong "$out on a full disk: $status"; tail -3 "$work/err" ;; esac
done
[ -z "$(ls -A "$work/limit")" ] && ok || wrong "left behind: $(ls "$work/limit")"
"$isamap" compile tests/data/api/scale.isam -o "$work/kept.so" >/dev/null 2>&1
before=$(cksum <"$work/kept.so")
(ulimit -f 1; "$isamap" compile tests/data/api/scale.isam -o "$work/kept.so" >/dev/null 2>&1)
[ "$before" = "$(cksum <"$work/kept.so")" ] && ok || wrong "a failed write changed the file"
"$isamap" sim examples/i8/gmm.isam -m edge16 "${small[@]}" --trace /dev/stdout 2>/dev/null | grep -q traceEvents && ok || wrong "--trace /dev/stdout"

# ---- signals ----
mkdir "$work/stop" "$work/tmp"
for number in INT TERM; do
  TMPDIR=$work/tmp timeout --preserve-status -s "$number" 0.4 \
    "$isamap" sim examples/i8/c2d.isam -m edge16 -D N=256 --trace "$work/stop/t.json" >/dev/null 2>&1
  status=$?
  [ $status -eq $((128 + $(kill -l "$number"))) ] && ok || wrong "SIG$number: status $status"
  [ -z "$(ls -A "$work/stop")$(ls -A "$work/tmp")" ] && ok || wrong "SIG$number left $(ls -A "$work/stop" "$work/tmp")"
done

grep -q asan <<<"$(ldd "$isamap")" && { echo "$passed passed, $failed failed"; exit $failed; }
for number in INT SEGV; do # while its folder is there
  TMPDIR=$work/tmp "$isamap" calibrate -m host -o "$work/x.params" >/dev/null 2>&1 &
  for _ in $(seq 100); do [ -z "$(ls -A "$work/tmp")" ] || break; sleep 0.05; done
  [ -n "$(ls -A "$work/tmp")" ] && ok || wrong "calibrate makes no folder"
  kill -s "$number" $!
  wait $! 2>/dev/null
  [ -z "$(ls -A "$work/tmp")" ] && ok || wrong "SIG$number left $(ls -A "$work/tmp")"
done
timeout --preserve-status -s SEGV 0.4 "$isamap" sim examples/i8/c2d.isam -m edge16 -D N=256 >/dev/null 2>"$work/err" # a fault far from the stack
status=$?
[ $status -eq 139 ] && ! grep -q memory "$work/err" && ok || { wrong "a fault of another kind: status $status"; cat "$work/err"; }

# ---- memory ----
cc -shared -fPIC -O1 tests/data/memory/scarce.c -o "$work/scarce.so" || wrong "cc"
scarce() { # arguments
  local total
  total=$(SCARCE=0 LD_PRELOAD=$work/scarce.so "$isamap" "$@" 2>&1 >/dev/null | sed -n 's/^allocations //p' | tail -1)
  for part in 2 15 50 90; do # hundredths of its allocations
    SCARCE=$((total * part / 100)) LD_PRELOAD=$work/scarce.so timeout 20 "$isamap" "$@" >"$work/out" 2>"$work/err"
    status=$?
    if [ $status -eq 6 ] && grep -q memory "$work/err" || [ $status -eq 0 ]; then ok; else wrong "$* without memory after $part % of its allocations: $status"; tail -2 "$work/err"; fi
  done
}
scarce run examples/f32/gmm.isam "${small[@]}" --verify
scarce sim examples/i8/gmm.isam -m edge16 "${small[@]}"
scarce check machines/edge16.xml
scarce map examples/i8/gmm.isam -m edge16
scarce compile tests/data/api/scale.isam -o "$work/x.so"
(ulimit -v 1500000; "$isamap" run examples/f32/gmm.isam -D M=20000 -D N=20000 -D K=8 >"$work/out" 2>"$work/err")
[ $? -eq 6 ] && grep -q "not enough memory for 16" "$work/err" && ok || { wrong "arrays beyond the memory"; cat "$work/err"; }
awk 'BEGIN { n = 800; print "kernel chain(N=4096) {\n  in T0: f32[N]  out T" n ": f32[N]\n  axes i: N"
  for (k = 1; k < n; k++) print "  temp T" k ": f32[N]"
  for (k = 1; k <= n; k++) print "  T" k "[i] = T" k - 1 "[i] * " 1 + k % 7 / 16 " + " k % 5
  print "}" }' >"$work/chain.isam" # 13 GB were needed for twice as many, a copy of all nests for each cut
(ulimit -v 1000000; "$isamap" compile "$work/chain.isam" -m cpu-avx2 --no-check --no-cache -o "$work/chain.sched" >"$work/out" 2>"$work/err")
[ $? -eq 0 ] && ok || { wrong "a chain of 800 statements within 1 GB"; tail -2 "$work/err"; }
awk 'BEGIN { n = 1400; print "kernel chain(N=4096) {\n  in T0: f32[N]  out T" n ": f32[N]\n  axes i: N"
  for (k = 1; k <= n; k++) print "  const W" k ": f32[N]  temp U" k ": f32[N]" (k < n ? "  temp T" k ": f32[N]" : "")
  for (k = 1; k <= n; k++) print "  U" k "[i] = T" k - 1 "[i] * W" k "[i]\n  T" k "[i] = max(U" k "[i], T" k - 1 "[i])"
  print "}" }' >"$work/arrays.isam"
"$isamap" compile "$work/arrays.isam" -m cpu-avx2 --no-cache -o "$work/arrays.sched" >"$work/out" 2>"$work/err"
[ $? -eq 0 ] && grep -q "^schedule *proved" "$work/out" && ok || { wrong "a schedule of more than 4,000 arrays is proved"; cat "$work/out" "$work/err"; }
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
