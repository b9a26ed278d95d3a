#!/usr/bin/env bash
# A compiled model as a library: it needs nothing of isamap and no weights from its caller, and every wrong argument has a status.
# Usage: tests/library.sh BUILD
set -u
isamap=$1/isamap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { if "${@:2}" >"$work/log" 2>&1; then passed=$((passed + 1)); else echo "FAILED: $1"; tail -5 "$work/log"; failed=$((failed + 1)); fi; }
"$isamap" check examples/digits/digits-int8.onnx -D N=1 2>&1 | grep -q protobuf && { echo "no ONNX in this build"; exit 0; }

model() { # weights, flags of the program
  mkdir -p "$work/$1"
  check "compile --weights $1" "$isamap" compile examples/digits/digits-int8.onnx -D N=1 -o "$work/$1/net.so" --weights "$1"
  check "link, $1" cc -std=c11 -Wall -Wextra -Werror "${@:2}" -I"$work/$1" tests/data/api/digits.c "$work/$1/net.so" -o "$work/$1/run"
}
model embed
check "embedded weights" "$work/embed/run" examples/digits/images-int8.npy examples/digits/logits-int8.npy
model file -DWEIGHTS
check "weights in a file" "$work/file/run" examples/digits/images-int8.npy examples/digits/logits-int8.npy "$work/file/net.weights" "$(stat -c %s "$work/file/net.weights")"
check "no such place for weights" bash -c "! $isamap compile examples/digits/digits-int8.onnx -D N=1 -o $work/x.so --weights elsewhere 2>$work/said && grep -q 'no place for weights, expected embed' $work/said"

# a size outside the declared range
check "compile an open size" "$isamap" compile tests/data/api/scale.isam -o "$work/scale.so"
cat >"$work/scale.c" <<'C'
#include "scale.h"
#include <stdlib.h>
int main(void) {
    float x[512] = {1}, w[64] = {1}, y[512], h[8] = {0};
    struct scale_args args = {.X = x, .W = w, .Y = y, .h0 = h, .threads = 1, .size_T = 5000};
    args.prepared = aligned_alloc(64, scale_prepared_bytes() + 64);
    void *work = aligned_alloc(64, scale_workspace_bytes() + 64);
    if (scale_prepare(&args) || scale_run(&args, work) != 2) return 1;
    args.size_T = 0;
    if (scale_run(&args, work) != 2) return 2;
    args.size_T = 64;
    return scale_run(&args, work) || y[0] != 1 || !scale_argument(0)->size;
}
C
check "link" cc -std=c11 -Wall -Wextra -Werror -I"$work" "$work/scale.c" "$work/scale.so" -o "$work/scale"
check "sizes out of range" "$work/scale"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
