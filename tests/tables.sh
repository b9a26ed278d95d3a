#!/usr/bin/env bash
# scripts/tables: tables are what `isamap bench` printed, all other text stays; several runs give the least of each contender; what fails leaves its table.
set -u
build=$(realpath "$1")
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ISAMAP_CACHE_SIZE=0 XDG_CONFIG_HOME=$work/config
fail() { echo "$1"; exit 1; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 0; }

# what a command prints is known: each turn another time of `a`, and a peer that gets slower
mkdir "$work/bin"
cat >"$work/bin/isamap" <<'EOF'
#!/usr/bin/env bash
[ "$2" = fails ] && exit 1
n=$(($(cat "$0.count") + 1)) && echo $n >"$0.count"
cat <<JSON
{"suite": "s", "machine": "m", "measured": "run here", "results": [
 {"workload": "a", "threads": 1, "peers": {"p": 4, "q": $((n + 1))}, "ours_ms": $((4 - n)), "ratio": 9, "gflops": $n, "peak_gflops": 100, "peak_fraction": 0.5, "predicted_ms": 1500.25},
 {"workload": "b", "threads": 1, "error": "no way"}]}
JSON
EOF
chmod +x "$work/bin/isamap" && echo 0 >"$work/bin/isamap.count"
cat >"$work/doc.md" <<'EOF'
Text with `isamap bench other`.

`isamap bench s`: what it is,
in two lines

| old |
|---|

Measured: long ago.

`isamap bench fails`

| kept |
|---|

| a table | of its own |
EOF
(cd "$work" && PATH=$work/bin:$PATH "$top/scripts/tables" --times 2 --json "$work/json" doc.md 2>"$work/err") && fail "a command that fails is not reported"
grep -q 'isamap bench fails' "$work/err" || fail "it is not said which command failed"
cat >"$work/expected" <<'EOF'
Text with `isamap bench other`.

`isamap bench s`: what it is,
in two lines

| workload | ours ms | p | q | ratio | GFLOP/s | of peak | predicted ms |
|---|---|---|---|---|---|---|---|
| a | 2 | 4 | 2 | 1 | 2 | 0.5 | 1500 |
| b | no way |  |  |  |  |  |  |

EOF
head -10 "$work/doc.md" | diff "$work/expected" - || fail "another table"
sed -n 11p "$work/doc.md" | grep -q '^Measured: m on .*; threads 1; peak 100 to 100 GFLOP/s\.$' || fail "another line: $(sed -n 11p "$work/doc.md")"
sed -n '12,$p' "$work/doc.md" | diff - <(printf '\n`isamap bench fails`\n\n| kept |\n|---|\n\n| a table | of its own |\n') || fail "other text is changed"

# what is kept is not measured again, and a second time nothing changes
cp "$work/doc.md" "$work/again.md"
(cd "$work" && PATH=$work/bin:$PATH "$top/scripts/tables" --only 'bench s' --times 2 --json "$work/json" again.md) || fail "it fails"
diff "$work/doc.md" "$work/again.md" || fail "the second time is another"
[ "$(cat "$work/bin/isamap.count")" = 2 ] || fail "measured again"

# and the command itself
printf '`isamap bench bench/smoke.csv --only product --vs none --runs 1`\n\n| |\n|---|\n\n`isamap bench PROGRAM` is spoken of.\n' >"$work/real.md"
PATH=$build:$PATH scripts/tables "$work/real.md" || fail "isamap bench fails"
grep -qE '^\| product \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$' "$work/real.md" || fail "no row of the product: $(cat "$work/real.md")"
grep -qE '^Measured: cpu-' "$work/real.md" || fail "no machine"
grep -q 'is spoken of' "$work/real.md" || fail "what has no table is changed"
