#!/usr/bin/env bash
# scripts/switches: each row switches off what its name says. A GRU of 32 units on edge16: what each is worth in bytes of DRAM a step is known from the sizes.
set -u
build=$(realpath "$1")
[ "${ISAMAP_EVERY:-1}" = 1 ] || { echo "skipped: a script, and commands that other tests run with sanitizers"; exit 0; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 0; }
export ISAMAP_HOST=cpu-avx2 PATH=$build:$PATH
rows=$(scripts/switches -m edge16 -D T=16 -D H=32 --kernel gru_i8 bench/recurrent.isam) || { echo "it fails"; exit 1; }
cell() { sed -n "s/^| $1 | \([0-9.]*\) | \([0-9.]*\) |.*/\\$2/p" <<<"$rows" | cut -d. -f1; }
fail() { echo "$1"; echo "$rows"; exit 1; }
weights=$((3 * 32 * 32)) # of the states' products; those of the inputs take as many
cycles=$(cell "as planned" 1) bytes=$(cell "as planned" 2)
[ -n "$cycles" ] || fail "no row of the plan"
for row in "without residency" "one step at a time"; do
  got=$(cell "$row" 2)
  [ -n "$got" ] && [ "$got" -ge $((bytes + weights * 9 / 10)) ] || fail "'$row' does not bring the weights in each step"
done
for row in "without lifting" "products apart"; do
  got=$(cell "$row" 1)
  [ -n "$got" ] && [ "$got" -ge $((cycles * 6 / 5)) ] || fail "'$row' is as fast as the plan"
done
scripts/switches -m edge16 -D H=32 --kernel gru_i8 bench/recurrent.isam 2>/dev/null && fail "it runs without a number of steps"
# A length that is known only when the program runs: without lifting the inputs' weights pass in each step, not once for a group of steps.
rows=$(scripts/switches --open -m cpu-scalar -D T=24 -D B=1 -D H=24 --kernel gru_steps bench/recurrent.isam) || fail "an open length fails"
[ "$(cell "without lifting" 2)" -ge $(($(cell "as planned" 2) + 3 * 24 * 24 * 2)) ] || fail "groups of steps bring as much as each step"
# Several machines, sizes and parameters are one table: less memory for weights brings more bytes.
rows=$(ISAMAP_HOST=cpu-scalar scripts/switches -m edge16,vdla -D T=4 -D H=48 --param T=16 examples/i8/rnn.isam 2>&1) && fail "vdla has no parameter T"
rows=$(ISAMAP_HOST=cpu-scalar scripts/switches -m vdla -D T=16 -D H=64 --param WGT=64K,8K examples/i8/gru.isam) || fail "a table of two parameters fails"
planned() { sed -n "s/^| $1 | as planned | [0-9.]* | \([0-9]*\) |.*/\1/p" <<<"$rows"; }
grep -q '^| WGT | a step |' <<<"$rows" || fail "no column of the parameter"
[ "$(planned 64K)" -gt 0 ] && [ "$(planned 8K)" -gt $(($(planned 64K) + 2000)) ] || fail "weights that do not fit are not brought again"
# On this computer: a row for fewer registers, if its machine file has any. Times are not compared: what four registers cost is the computer's matter.
export ISAMAP_PARAMETERS=/nowhere
unset ISAMAP_HOST
rows=$(scripts/switches --run --rounds 3 -D M=192 -D N=192 -D K=192 --kernel gemm_weights bench/gemm.isam) || { echo "it fails"; exit 1; }
for row in "as planned" "2 threads"; do grep -q "^| $row | [0-9.]* | " <<<"$rows" || fail "no row '$row'"; done
grep -q "^| four registers | [0-9.]* | " <<<"$rows" || isamap run bench/gemm.isam -D M=8 -D N=8 -D K=8 | grep -q "on cpu-scalar" || fail "no row of four registers"
scripts/switches --run -m edge16 bench/gemm.isam 2>/dev/null && fail "it runs on a device"
# scripts/lengths: schedules and code do not grow with the steps; that they grow with something else is seen.
rows=$(scripts/lengths --rounds 1 --of 1,4,400,open -m cpu-scalar -D H=16 examples/f32/gru.isam) || fail "a recurrence grows with its steps"
[ "$(grep -cE '^\| (1|4|400|open) \| [0-9]+ \| [0-9]+ \| [0-9.]+ \|$' <<<"$rows")" = 4 ] || fail "not a row for each number of steps"
rows=$(ISAMAP_HOST=cpu-scalar scripts/lengths --rounds 1 --of 4,400 -m edge16 -D H=32 examples/i8/rnn.isam) || fail "a recurrence of a device grows with its steps"
rows=$(scripts/lengths --rounds 1 --steps H --of 4,48 -m cpu-avx2 -D T=3 examples/f32/gru.isam) && fail "growth is not seen"
rows=$(scripts/lengths --rounds 1 --steps S examples/f32/gru.isam 2>&1) && fail "a size that is not there is taken"
# scripts/networks: a row for each model and machine; one without products has no share of them, one that cannot be read is said.
rows=$(scripts/networks -m edge16,cpu-scalar --host cpu-scalar tests/data/onnx/nan_min/model.onnx tests/data/onnx/dynamic_quantize_matmul/model.onnx) || fail "a network fails"
[ "$(grep -cE '^\| model \|.*\| none \|.*\| proved \|$' <<<"$rows")" = 2 ] || fail "a share of no products"
rows=$(scripts/networks -m edge16 --host cpu-scalar -D N=1 examples/digits/digits-int8.onnx) || fail "the digits fail"
grep -qE '^\| digits-int8 \| edge16 \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ % \| 100.00 % \|.*\| proved \|$' <<<"$rows" || fail "products of digits are not on edge16"
rows=$(scripts/networks -m edge16 examples/digits/digits-int8.onnx) && fail "an open size is taken"
grep -q "'N' has no value" <<<"$rows" || fail "it does not say which size is open"
echo passed
