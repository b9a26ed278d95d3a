#!/usr/bin/env bash
# Every tests/cases/NAME.case is a shell text in which `isamap` is the command; what it prints and its exit status must equal NAME.expected.
# Times are replaced by T. `tests/cases.sh BUILD update` rewrites the expectations: read the diff. `tests/cases.sh BUILD [update] NAME...` takes only those cases.
set -u
build=$(realpath "$1")
shift
update=
[ "${1:-}" = update ] && update=$1 && shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$build:$PATH" OUT="$work" LC_ALL=C ISAMAP_CACHE_SIZE=0
failed=0 passed=0
clean() {
  sed -E -e "s#$work#OUT#g" -e 's/in [0-9.e+-]+ (s|ms)/in T \1/g' -e 's/, [0-9.e+-]+ GMAC\/s//' \
    -e 's/"(compile_seconds|proof_seconds|run_seconds|wall_seconds|seconds|certify_seconds)": [0-9.e+-]+/"\1": T/'
}
cases=(tests/cases/*.case)
[ $# -gt 0 ] && cases=("${@/#/tests/cases/}") && cases=("${cases[@]/%/.case}")
for case in "${cases[@]}"; do
  expected=${case%.case}.expected
  got=$work/got
  { bash -e "$case" 2>&1; echo "exit status $?"; } | clean >"$got"
  if [ -n "$update" ]; then
    cp "$got" "$expected"
  elif diff -u "$expected" "$got"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $case"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && { [ -n "$update" ] || [ "$passed" -gt 0 ]; }
