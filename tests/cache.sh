#!/usr/bin/env bash
# What earlier calls left is used where all is the same, and nowhere else; torn and foreign entries are computed again.
set -u
export PATH="$(realpath "$1"):$PATH" LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_CACHE=$work/cache
unset ISAMAP_CACHE_SIZE
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*"; }
# said EXPECTED COMMAND...: does it say that the schedule is of an earlier call? EXPECTED: kept or new
said() {
  local want=$1 got=new
  shift
  "$@" >"$work/out" 2>"$work/err" || { bad "status $?: $*: $(cat "$work/err")"; return; }
  grep -q 'of an earlier call' "$work/out" && got=kept
  if [ $got = "$want" ]; then ok; else bad "'$*' is $got, expected $want"; fi
}
sizes=(-D M=35 -D N=32 -D K=40)
g() { isamap run gmm.isam -m cpu-avx2.xml "${sizes[@]}" --verify "$@"; }
cp examples/f32/gmm.isam machines/cpu-avx2.xml examples/i8/c2d.isam machines/edge16.xml machines/cpu-scalar.xml "$work"
cd "$work" || exit 1
export ISAMAP_MACHINE_PATH=$work

if grep -q avx2 /proc/cpuinfo; then
  said new g
  said kept g
  grep -q '^verified *yes' out && ok || bad "values"
  said new g --no-cache
  ISAMAP_CACHE_SIZE=0 said new g
  ISAMAP_CACHE=$work/other said new g
  said kept g --seed 1
  said new g --threads 2
  said new g --param L2=1M
  said new g --allow exact
  said kept g --param L2=1M
  said kept g
  env -u ISAMAP_CACHE -u XDG_CACHE_HOME HOME="$work/nobody" isamap run gmm.isam -m cpu-avx2.xml "${sizes[@]}" --verify | grep -q '^verified *yes' && [ ! -e nobody ] && ok || bad "a home that is not there"
  mkdir home && (
    unset ISAMAP_CACHE XDG_CACHE_HOME
    export HOME=$work/home
    g && g
  ) | grep -q 'of an earlier call' && ok || bad "the folder in a home"
  isamap run gmm.isam -m cpu-avx2.xml "${sizes[@]}" --json | grep -q '"cached": true' && ok || bad "JSON"
  isamap compile gmm.isam -m cpu-avx2.xml "${sizes[@]}" -o kept.sched >out
  isamap compile gmm.isam -m cpu-avx2.xml "${sizes[@]}" -o new.sched --no-cache >out
  cmp kept.sched new.sched && ok || bad "the schedules differ"
  # what is damaged, foreign or no file is computed again, and then kept again
  for damage in 'truncate -s -1' 'truncate -s 0' 'truncate -s 40' 'dd if=/dev/urandom conv=notrunc bs=1 count=8 seek=3000 status=none of=' 'cp /bin/sh' 'rm -f'; do
    for e in cache/*.entry; do
      case $damage in *of=) $damage"$e" 2>/dev/null ;; cp*) $damage "$e" ;; *) $damage "$e" ;; esac
    done
    said new g
    grep -q '^verified *yes' out && ok || bad "values after '$damage'"
    said kept g
  done
  for e in cache/*.entry; do rm "$e" && mkfifo "$e"; done
  said new g
  said kept g
  for e in cache/*.entry; do mv "$e" "away.$(basename "$e")" && ln -s "../away.$(basename "$e")" "$e"; done
  said new g
  # another program, another machine file, another build
  sed -i 's/M=[0-9]*/M=36/' gmm.isam
  said kept g
  sed -i 's/+= A/+= 2 * A/' gmm.isam
  said new g
  sed -i 's/latency="4"/latency="5"/' cpu-avx2.xml
  said new g
  said kept g
  # builds are told apart, however the command was found
  mkdir bin && cp "$(command -v isamap)" bin
  here=$PATH PATH=$work/bin:$PATH
  hash -r
  said new g
  said kept g
  cp bin/isamap bin/next && mv bin/next bin/isamap
  said new g
  said kept g
  PATH=$here
  hash -r
  said kept g
  # many at a time
  rm -rf cache
  for i in 1 2 3 4 5 6; do (g >many.$i 2>&1 || echo FAILED >>many.$i) & done
  wait
  [ "$(grep -l '^verified *yes' many.* | wc -l)" = 6 ] && ok || bad "six at a time: $(cat many.*)"
  ls cache | grep -q part && bad "an unfinished entry is left" || ok
  said kept g
  # a folder that others can write to
  chmod 777 cache
  said new g
  grep -q 'others can write to it' err && ok || bad "no warning: $(cat err)"
  chmod 700 cache
  # its size
  export ISAMAP_CACHE_SIZE=900K
  for k in 3 4 5 6 7 8 9; do isamap run gmm.isam -m cpu-avx2.xml -D M=35 -D N=32 -D K=$k >out || bad "K=$k"; done
  bytes=$(cat cache/*.entry | wc -c)
  [ "$bytes" -le 921600 ] && [ "$bytes" -gt 100000 ] && ok || bad "$bytes bytes, at most 921600 are allowed"
  said kept isamap run gmm.isam -m cpu-avx2.xml -D M=35 -D N=32 -D K=9
  said new g
  export ISAMAP_CACHE_SIZE=much
  said new g
  grep -q "'much' is no size" err && ok || bad "size: $(cat err)"
  unset ISAMAP_CACHE_SIZE
fi

# on a device: cycles, warnings and the state of the proof are those of the first time
export ISAMAP_HOST=cpu-scalar
s() { isamap sim c2d.isam -m edge16.xml -D N=1 -D P=10 -D Q=10 "$@"; }
said new s
sed -E 's/ in [0-9.e-]+ s|compiled .*//' out >first
cp err first.err
said kept s
sed -E 's/ in [0-9.e-]+ s|compiled .*//' out | diff first - && ok || bad "reports differ"
diff first.err err && ok || bad "warnings differ"
s --json | grep '"seconds"' >kept.json
s --json --no-cache | grep '"seconds"' | diff kept.json - && ok || bad "seconds differ"
said new s --param SPAD=32K
printf 'kernel two() {\n  in A: f32[64, 64]  in B: f32[64, 64]  out C: f32[64, 64]  axes i: 64, j: 64, k: 64\n  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j]\n}\n' >two.isam
said new isamap sim two.isam -m edge16.xml
cp err first.err
grep -q warning err && ok || bad "no warning: $(cat err)"
said kept isamap sim two.isam -m edge16.xml
diff first.err err && ok || bad "warnings differ"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
