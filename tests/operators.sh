#!/usr/bin/env bash
# Operators on machine files of every kind, shrunk to a few tiles and a tail: at least 99 % of their MACs on instructions, values as the interpreter's, schedules verified.
# `scripts/operators --shrunk --need 99` does it for all of them on all machines of machines/.
set -u
PATH=$1:$PATH
export ISAMAP_MACHINE_PATH=tests/data/machines/ports:machines
failed= runs=0
run() { [ $((runs++ % ${ISAMAP_EVERY:-1})) -eq 0 ] || return; scripts/operators --shrunk --need 99 "$@" || failed=1; }
run cpu-amx:i8,i8,i32 gmm gfc c1d c2d c3d grp dil t2d cap bcv att sep
run cpu-avx512:u8,i8,i32 mma:i8,i8,i32 gmm c1d grp t2d cap att
run cpu-avxvnni:u8,i8,i32 gmm c2d att
run cpu-avx512:u8,i8,i32 edge16:i8,i8,i32 gemmini:i8,i8,i32 sep
run edge16:i8,i8,i32 gemmini:i8,i8,i32 dot4:i8,i8,i32 t2d
run mma:bf16,bf16,f32 mma:f16,f16,f32 cpu-amx:bf16,bf16,f32 gmm cap att
run mma:i8,i8,i32 mma:f16,f16,f32 c2d dil
run mma:i8,i8,i32 sep
run edge16:i8,i8,i32 gemmini:i8,i8,i32 dot4:i8,i8,i32 gmm att
run outer:f32,f32,f32 odd:i8,i8,i32 gmm c2d
run conv3:i8,i8,i32 c2d
run condor:i8,i8,i32 gmm c1d c2d dil
run kite:i8,i8,i32 gmm c2d t2d att
run heron:i8,i8,i32 gmm c2d dil t2d att
# Tiles that are no multiples of what addresses at home are; a queue without an instruction that does nothing.
run loom:i8,i8,i32 duo:i8,i8,i32 quince:i8,i8,i32 gmm c1d
# Operands and sums in banks of one memory; cells that hold sums between two levels of scratchpads.
run nimc:i8,i8,i32 os14:i8,i8,i32 gmm c1d
# Instructions that begin at any byte, and a home that is aligned to four: copies hold four at a time.
run swift:i8,i8,i32 rail:i8,i8,i32 gmm c1d
# Clusters of which the schedule chooses how many, behind a memory that all share.
run finch:i8,i8,i32 gmm c1d
# Bytes are made of sums where these lie: round half up, by constants of which one is computed from another, its low bound the ReLU.
isamap sim tests/data/found/handed-on.isam -m heron --verify --check | grep -q 'operations *rq 100 %' || failed=1
# Biases that nothing brings to the sums: these begin with zero, and the rest adds.
isamap sim examples/i8/residual.isam -m heron -D H=9 -D W=8 -D C=20 --verify --check | grep -q 'MACs *opa 100 %' || failed=1
isamap sim tests/data/found/bias-two-moves-away.isam -m rail --verify --check | grep -q 'MACs *imac 100 %' || failed=1
# The bias and the sums are added in one statement, for which there are instructions that accumulate nothing.
isamap sim tests/data/found/bias-two-moves-away.isam -m rail --no-values | grep -q 'operations *host_add.i32 100 %' || failed=1
# No move brings what the cheaper instruction reads: the other one executes the product.
isamap sim examples/f32/gmm.isam -m tests/data/machines/mapper/second.xml -D M=35 -D N=37 -D K=36 --verify --check | grep -q 'MACs *mopa 100 %' || failed=1
# Where sums must be rounded for the next product.
run --allow rounds mma:f16,f16,f32 cpu-amx:bf16,bf16,f32 sep
# Windows begin at any row of a fragment's home: a copy by axes would have each element nine times.
copies=$(mktemp -d)
isamap compile examples/operators/c2d.isam -m mma -o "$copies/x.sched" >/dev/null && ! grep -q by_axes "$copies/x.sched" || failed=1
rm -r "$copies"
# Whole sizes, which leave other tails and tiles.
scripts/operators --compile --need 99 cpu-amx:i8,i8,i32 cpu-amx:bf16,bf16,f32 c2d grp cap att sep || failed=1
[ -z "$failed" ]
