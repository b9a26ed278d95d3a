#!/usr/bin/env bash
# Streams: a library with init, step, finish and state gives the same numbers for every cut of the sequence, takes no memory after init, and
# says what is wrong. Usage: tests/stream.sh BUILD
set -u
isamap=$(realpath "$1")/isamap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; tail -5 "$work/log"; failed=$((failed + 1)); fi; }
says() { "$isamap" "${@:2}" 2>&1 | grep -q -- "$1"; }

for kind in so c; do
  mkdir -p "$work/$kind"
  machine=host
  [ $kind = c ] && machine=cpu-scalar
  check "compile, $kind" "$isamap" compile examples/f32/gru.isam -m $machine -D H=16 -o "$work/$kind/gru.$kind"
  [ $kind = c ] && check "the C text" cc -std=gnu11 -O1 -shared -fPIC -ffp-contract=off -fno-strict-aliasing "$work/c/gru.c" -lm -o "$work/c/gru.so"
  [ $kind = so ] && check "link" cc -std=gnu11 -O1 -Wall -Wextra -Werror -I"$work/$kind" examples/recurrent/stream.c "$work/$kind/gru.so" -o "$work/$kind/stream"
  python3 - "$work" <<'P'
import random, struct, sys
random.seed(2)
for name, n in ("frames", 40 * 48), ("weights", 3 * 256):
    open(f"{sys.argv[1]}/{name}", "wb").write(struct.pack(f"{n}f", *(random.uniform(-0.5, 0.5) for _ in range(n))))
P
  [ $kind = so ] && for n in 40 1 2 7; do
    check "$n frames a step" bash -c "$work/$kind/stream $work/frames $work/weights $n >$work/$kind/out$n && cmp $work/$kind/out40 $work/$kind/out$n && [ -s $work/$kind/out$n ]"
  done
  check "from Python, $kind" python3 examples/recurrent/stream.py "$work/$kind/gru.so"
done
# memory is taken before the first step: as many calls for 1 step as for 40
cat >"$work/count.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
extern void *__libc_malloc(size_t);
static unsigned long n;
void *malloc(size_t size) { return n++, __libc_malloc(size); }
__attribute__((destructor)) static void say(void) { fprintf(stderr, "%lu\n", n); }
C
cc -shared -fPIC "$work/count.c" -o "$work/count.so" 2>/dev/null
calls() { LD_PRELOAD="$work/count.so" "$work/so/stream" "$work/frames" "$work/weights" "$1" 2>&1 >/dev/null | tail -1; }
check "no memory in steps" [ "$(calls 40)" = "$(calls 1)" ]

# what cannot be cut has no such entries, and is told why
stream() { printf 'kernel k(T=0..9) {\n  in x: f32[T, 4]  in a: f32[4]  out y: f32[T, 4]  out b: f32[4]\n%b}\n' "$1" >"$work/k.isam"; }
refused() { stream "$2"; check "$1" says "is not a stream: $1" run "$work/k.isam" -m cpu-scalar --steps 3; }
refused "the recurrence over 't' runs backwards" '  recur t: T reverse state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n'
refused "a value depends on the number of the step, 't'" '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + f32(t)\n y[t,i] = h[i] + x[t,i]\n }\n'
refused "a domain depends on the step 't'" '  recur t: T state h: f32[4] from a to b { axes i: 4, s: t+1\n y[t,i] = 0\n y[t,i] += x[s,i]\n h'"'"'[i] = h[i]\n }\n'
refused "a step touches other rows of 'x' than its own" '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t-1,i else 0]\n y[t,i] = h[i]\n }\n'
refused "'a' is read besides" '  axes j: 4\n temp s: f32[4]\n s[j] = a[j]\n  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i] + s[i]\n }\n'
refused "the state 'h' does not begin in an input and end in an output" '  recur t: T state h: f32[4] from a { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n  axes j: 4\n  b[j] = a[j]\n'
stream '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n'
check "steps are timed" says "^steps       300: median .* us, 99.9 % at most .* us, worst .* us" run "$work/k.isam" -m cpu-scalar --steps 300
check "a step of four rows" says "^steps       3: " run "$work/k.isam" -m cpu-scalar --steps 3 --size T=4
check "no such state" says "there is no output 'z'" run "$work/k.isam" -m cpu-scalar --steps 3 --state a=z
check "a state of another shape" says "'x' and 'b' are not an input and an output of one type and shape" run "$work/k.isam" -m cpu-scalar --steps 3 --state x=b
check "no recurrence" says "is not a stream: it has no recurrence of an open length" run examples/f32/gmm.isam -m cpu-scalar -D M=4 -D N=4 -D K=4 --steps 3
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
