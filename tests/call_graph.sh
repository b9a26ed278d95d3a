#!/usr/bin/env bash
# Who may call whom, by the symbols of the object files. A folder's functions call nothing of ours but what `may` allows.
# Inside the folders of `acyclic` no two files call each other, directly or over others. What is excepted from both stands
# in `except`, a line each: the file that calls, the file that is called, why.
# What only its own file uses is static: each other symbol is used by another file or a test, or begins with isamap_, as what users call (with __: a sanitizer's).
set -u
build=${1:?usage: call_graph.sh BUILD}
may() {
  cat <<'TABLE'
ir ir
machines machines ir generated
mapper mapper machines ir
scheduler/schedule scheduler/schedule machines ir
scheduler/clock scheduler/clock scheduler/schedule machines ir
scheduler/plan scheduler/plan scheduler/schedule mapper machines ir
scheduler/emit scheduler/emit scheduler/plan scheduler/schedule mapper machines ir
scheduler/verify scheduler/verify scheduler/schedule machines ir
scheduler scheduler scheduler/plan scheduler/emit scheduler/verify scheduler/clock scheduler/schedule mapper machines ir
sim sim scheduler/clock scheduler/schedule machines ir
approaches approaches ir
TABLE
}
acyclic="scheduler scheduler/plan scheduler/emit scheduler/schedule scheduler/verify"
except() {
  cat <<'TABLE'
TABLE
}

# Of files that are still there: a build folder keeps the objects of others.
symbols() {
  find "$build"/CMakeFiles/isamap_*.dir -name '*.c.o' | while read -r object; do
    source=${object#*/isamap_*.dir/}
    case $source in generated/*) echo "$object" ;; *) [ -e "${source%.o}" ] && echo "$object" ;; esac
  done | xargs -d '\n' nm -A -g -P 2>/dev/null
}
users() { find "$build"/tests/CMakeFiles "$build"/CMakeFiles/isamap.dir -name '*.c.o' -exec nm -A -g -P -u {} + 2>/dev/null | sed 's/^/user /'; }
{ may | sed 's/^/may /'; except | sed 's/^/except /'; users; symbols | sed 's/^/nm /'; } | awk -v acyclic="$acyclic" '
  function folder(file) { sub(/\/?[^\/]*$/, "", file); return file }
  function bad(message) { print message; failed++ }
  $1 == "may" { known[$2]; for (i = 3; i <= NF; i++) allowed[$2, $i]; next }
  $1 == "except" { excepted[$2, $3]; if (NF < 4) bad("an exception without a reason: " $2 " " $3); next }
  $1 == "user" { needed[$3]; next }
  { file = $2; sub(/^.*CMakeFiles\/isamap_[^\/]*\.dir\//, "", file); sub(/\.o:.*$/, "", file) }
  $4 ~ /^[TDRBVW]$/ { owner[$3] = file; if (!(file in defines)) { defines[file]; files++ } }
  $4 == "U" { caller[++uses] = file; name[uses] = $3 }
  END {
    for (u = 1; u <= uses; u++) {
      if (!(name[u] in owner)) continue
      from = caller[u]; to = owner[name[u]]; a = folder(from); b = folder(to)
      if (from != to) needed[name[u]]
      if (from == to || (from, to) in seen) continue
      seen[from, to]
      if ((from, to) in excepted) { used[from, to]; continue }
      if (a in known && !((a, b) in allowed)) bad(from " may not call " name[u] " of " to)
      if (a == b && index(" " acyclic " ", " " a " ")) { tail[++inner] = from; head[inner] = to; left[from]; left[to] }
    }
    for (symbol in owner) if (!(symbol in needed) && symbol !~ /^(isamap_|__)/ && owner[symbol] !~ /^generated/) bad(owner[symbol] ": nobody else uses " symbol)
    for (pair in excepted) if (!(pair in used)) { split(pair, end, SUBSEP); bad("an exception that no call needs: " end[1] " " end[2]) }
    do { # who calls nobody that is left is on no cycle
      removed = 0; split("", calls)
      for (i = 1; i <= inner; i++) if (tail[i] in left && head[i] in left) calls[tail[i]] = head[i]
      for (f in left) if (!(f in calls)) { delete left[f]; removed++ }
    } while (removed)
    for (f in left) { # from each of the others calls lead into a cycle
      split("", passed)
      for (g = f; !(g in passed); g = calls[g]) passed[g]
      if (g in told) continue
      path = g; told[g]
      for (k = calls[g]; k != g; k = calls[k]) { path = path " -> " k; told[k] }
      bad("a cycle: " path " -> " g)
    }
    print files - failed " passed, " failed + 0 " failed"
    exit failed > 0 || files < 100
  }'
