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

# rows that grow with the steps: every cut, saved and restored, too many steps, begun again; a state beside them, steps that use their number
sizes="-D E=32 -D H=2 -D D=16 -D F=48"
for kernel in decoder decoder_i8; do
  check "compile, $kernel" "$isamap" compile examples/recurrent/decoder.isam --kernel $kernel $sizes -o "$work/$kernel.so"
  check "tokens, $kernel" python3 examples/recurrent/decode.py "$work/$kernel.so" 100
done
mkdir -p "$work/text"
check "compile, C" "$isamap" compile examples/recurrent/decoder.isam -m cpu-scalar $sizes -o "$work/text/decoder.c" --weights arguments
check "the C text of a decoder" cc -std=gnu11 -O1 -shared -fPIC -ffp-contract=off -fno-strict-aliasing "$work/text/decoder.c" -lm -o "$work/text/decoder.so"
check "tokens, C" python3 examples/recurrent/decode.py "$work/text/decoder.so" 100
cat >"$work/count.isam" <<'K'
kernel count(T=0..9) {
  in x: f32[T, 4]  const w: f32[9, 4]  in a: f32[4]  out y: f32[T, 4]  out b: f32[4]
  temp z: f32[T, 4]
  recur t: T state h: f32[4] from a to b {
    axes i: 4, s: t+1
    z[t,i]  = x[t,i] * w[t,i] + f32(t)
    h'[i]   = h[i] * 0.5 + z[t,i]
    y[t,i]  = h'[i]
    y[t,i] += z[s,i]
  }
}
K
cat >"$work/count_main.c" <<'C'
#include "count.h"
#include <stdlib.h>
#include <string.h>
static _Alignas(64) float x[9][4], w[9][4], a[4] = {1, 2, 3, 4}, whole[9][4], y[9][4], b[4], c[4];
int main(void) {
  for (int k = 0; k < 36; k++) x[k / 4][k % 4] = (float)(k % 7) - 3, w[k / 4][k % 4] = (float)(k % 5) - 2;
  struct count_args args = {.x = *x, .w = *w, .a = a, .y = *whole, .b = b, .threads = 1, .size_T = 9, .prepared = aligned_alloc(64, (count_prepared_bytes() + 63) / 64 * 64)};
  void *stream = aligned_alloc(64, (count_stream_bytes() + 127) / 64 * 64), *work = aligned_alloc(64, (count_workspace_bytes() + 127) / 64 * 64);
  if (count_prepare(&args) || count_run(&args, work)) return 1;
  args.b = c;
  for (int first = 0; first < 9; first++) { /* two cuts, at each place */
    if (count_init(&args, stream)) return 2;
    for (int at = 0, n; at < 9; at += n) {
      n = at < first ? first : 9 - at;
      args.x = x[at], args.y = y[at], args.size_T = n;
      if (count_step(&args, stream)) return 3;
    }
    if (count_finish(&args, stream) || memcmp(y, whole, sizeof y) || memcmp(b, c, sizeof b)) return 4;
    if (*(int64_t *)count_state(stream, 2) != 9 || count_state(stream, 3)) return 5;
    args.size_T = 1;
    if (count_step(&args, stream) != 2 || *(int64_t *)count_state(stream, 2) != 9) return 6;
    memset(y, 0, sizeof y);
  }
  return 0;
}
C
check "compile, count" "$isamap" compile "$work/count.isam" --weights arguments -o "$work/count_k.so"
check "link, count" cc -std=gnu11 -O1 -Wall -Wextra -Werror -I"$work" "$work/count_main.c" "$work/count_k.so" -o "$work/count_main"
check "a state beside rows, and weights by the step's number" "$work/count_main"
check "compile, count, C" "$isamap" compile "$work/count.isam" -m cpu-scalar --weights arguments -o "$work/text/count.c"
check "link, count, C" cc -std=gnu11 -O1 -ffp-contract=off -fno-strict-aliasing -I"$work/text" "$work/count_main.c" "$work/text/count.c" -lm -o "$work/text/count_main"
check "the same in C" "$work/text/count_main"

# what cannot be cut has no such entries, and is told why
stream() { printf 'kernel k(T=0..9) {\n  in x: f32[T, 4]  in a: f32[4]  out y: f32[T, 4]  out b: f32[4]\n%b}\n' "$1" >"$work/k.isam"; }
refused() { stream "$2"; check "$1" says "is not a stream: $1" run "$work/k.isam" -m cpu-scalar --steps 3; }
refused "the recurrence over 't' runs backwards" '  recur t: T reverse state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n'
refused "its steps count on from run to run, which only the entries of a library do" '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + f32(t)\n y[t,i] = h[i] + x[t,i]\n }\n'
refused "its steps count on from run to run, which only the entries of a library do" '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[3-i] = h[t else 0] + x[t,i]\n y[t,i] = h[i]\n }\n'
refused "its steps count on from run to run, which only the entries of a library do" '  in w: f32[9]\n recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + w[t]\n y[t,i] = h[i] + x[t,i]\n }\n'
refused "steps count on from run to run, and 'y' is used outside of them" '  temp z: f32[T, 4]  recur t: T state h: f32[4] from a to b { axes i: 4\n z[t,i] = x[t,i]\n h'"'"'[i] = h[i] + f32(t)\n }\n recur u: T { axes j: 4\n y[u,j] = z[u,j]\n }\n'
refused "a step touches other rows of 'x' than its own" '  recur t: T state h: f32[4] from a to b { axes i: 4, s: t+1\n y[t,i] = 0\n y[t,i] += x[s,i]\n h'"'"'[i] = h[i]\n }\n'
refused "a step touches other rows of 'x' than its own" '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t-1,i else 0]\n y[t,i] = h[i]\n }\n'
refused "'a' is read besides" '  axes j: 4\n temp s: f32[4]\n s[j] = a[j]\n  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i] + s[i]\n }\n'
refused "the state 'h' does not begin in an input and end in an output" '  recur t: T state h: f32[4] from a { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n  axes j: 4\n  b[j] = a[j]\n'
# the ends of recurrences inside a step count as what it reads and writes
refused "'z' goes from step to step and is no state" '  axes j: 4\n temp z: f32[4]\n z[j] = 0\n recur t: T state h: f32[4] from a to b { recur u: 2 state g: f32[4] from z to z { axes k: 4\n g'"'"'[k] = g[k] + x[t,k]\n }\n axes i: 4\n h'"'"'[i] = h[i]\n y[t,i] = z[i]\n }\n'
refused "'a' is read besides" '  recur t: T state h: f32[4] from a to b { temp z: f32[4]\n recur u: 2 state g: f32[4] from a to z { axes k: 4\n g'"'"'[k] = g[k] + x[t,k]\n }\n axes i: 4\n h'"'"'[i] = z[i]\n y[t,i] = h[i]\n }\n'
refused "each step writes the same elements of 'c'" '  inout c: f32[4]\n recur t: T state h: f32[4] from a to b { recur u: 2 state g: f32[4] from h to c { axes k: 4\n g'"'"'[k] = g[k] + x[t,k]\n }\n axes i: 4\n h'"'"'[i] = h[i]\n y[t,i] = h[i]\n }\n'
stream '  recur t: T state h: f32[4] from a to b { axes i: 4\n h'"'"'[i] = h[i] + x[t,i]\n y[t,i] = h[i]\n }\n'
check "steps are timed" says "^steps       300: median .* us, 99.9 % at most .* us, worst .* us" run "$work/k.isam" -m cpu-scalar --steps 300
check "a step of four rows" says "^steps       3: " run "$work/k.isam" -m cpu-scalar --steps 3 --size T=4
check "no such state" says "there is no output 'z'" run "$work/k.isam" -m cpu-scalar --steps 3 --state a=z
check "a state of another shape" says "'x' and 'b' are not an input and an output of one type and shape" run "$work/k.isam" -m cpu-scalar --steps 3 --state x=b
check "no recurrence" says "is not a stream: it has no recurrence of an open length" run examples/f32/gmm.isam -m cpu-scalar -D M=4 -D N=4 -D K=4 --steps 3
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
