#!/usr/bin/env bash
# The commands of README and docs do what they say. A command is a line of a fenced block that begins with `isamap`, or inline
# code that does. It is run in a folder beside links to the repository's own, document by document, and must end with status 0.
# What only speaks of a command (no file in it, or words that stand for something: PROGRAM, …) is compared with its options.
# A document says in HTML comments what else is to be done, one a line:
#   run: COMMAND => OTHER (reason)   the other is run instead
#   skip: COMMAND (reason)           it is not run
#   prints: COMMAND => PATTERN       what it prints matches, as grep -E does
# What a document links to within the repository exists.
set -u
[ "${ISAMAP_EVERY:-1}" = 1 ] || { echo "skipped: cases run the same commands at smaller sizes"; exit 0; }
build=$(realpath "$1")
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$build:$PATH" LC_ALL=C ISAMAP_CACHE_SIZE=0
export XDG_CONFIG_HOME=$work/config # what is measured stays here
unset ISAMAP_MACHINE_PATH

commands() { # of a document: NUMBER TAB TEXT
  awk '
    /<!--/ { comment = 1 }
    comment { if (/-->/) comment = 0; next }
    /^ *```/ { fence = !fence; language = $0; sub(/^ *```/, "", language); next }
    fence {
      if (language !~ /^(|sh|bash|console)$/) next
      sub(/^ *(\$ *)?/, "")
      if ($0 !~ /^isamap /) next
      sub(/ +#( .*)?$/, "")
      print FNR "\t" $0
      next
    }
    { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) if (part[i] ~ /^isamap /) print FNR "\t" part[i] }' "$1"
}

notes() { awk '/<!--/ { inside = 1 } inside { sub(/^<!-- */, ""); sub(/ *-->.*/, ""); print } /-->/ { inside = 0 }' "$1"; } # awk reads the line before sub

note() { # note KIND COMMAND: what stands behind it
  awk -v head="$1: $2" 'index($0, head) == 1 { rest = substr($0, length(head) + 1); if (rest ~ /^ *(=>|\(|$)/) { sub(/^ *(=>)? */, "", rest); print rest; exit } }' "$notes"
}

is_mention() {
  local words word files=0
  read -ra words <<<"$1"
  [[ $1 == *…* || $1 == *'['* || $1 == *'|'* ]] && return 0
  for ((i = 2; i < ${#words[@]}; i++)); do
    word=${words[i]}
    case $word in -m | -D | -o) word=${words[++i]} ;; --*) continue ;; *) files=$((files + 1)) ;; esac
    [[ $word =~ ^[A-Z]{2,}(\.[a-z]+)?$ ]] && return 0
  done
  [[ ${words[1]} == -* || ${words[1]} == COMMAND || $files == 0 ]]
}

options_exist() { # of the command that is spoken of
  local words word command
  read -ra words <<<"$1"
  command=${words[1]}
  [[ $command == -* || $command == COMMAND ]] && return 0
  isamap "$command" --help >"$here/help" || return 1
  for word in "${words[@]:2}"; do
    word=${word#[}
    [[ $word == --?* ]] || continue
    word=${word%%=*}
    grep -qE -- "${word%]}( |\$)" "$here/help" || { echo "$word is no option of '$command'"; return 1; }
  done
}

failed=0 ran=0 spoken=0 skipped=0
fail() { failed=$((failed + 1)); echo "FAILED: $doc:$line: $text${2:+ (run as: $2)}: $1"; }

one() { # a command of the document
  local instead pattern
  instead=$(note run "$text")
  instead=${instead% (*}
  if [ -n "$(note skip "$text")" ]; then skipped=$((skipped + 1)); return; fi
  if [ -z "$instead" ] && is_mention "$text"; then
    spoken=$((spoken + 1))
    options_exist "$text" >"$here/log" || fail "$(cat "$here/log")"
    return
  fi
  if [[ "${instead:-$text}" == *--rtl* ]] && ! command -v verilator >/dev/null; then skipped=$((skipped + 1)); return; fi
  ran=$((ran + 1))
  local start=$EPOCHREALTIME
  (cd "$here" && eval "timeout 180 ${instead:-$text}") >"$here/log" 2>&1 </dev/null || { fail "status $?: $(tail -5 "$here/log")" "$instead"; return; }
  [ -z "${VERBOSE:-}" ] || awk "BEGIN { printf \"%.2f s  %s:%d\\n\", $EPOCHREALTIME - $start, \"$doc\", $line }"
  pattern=$(note prints "$text")
  [ -z "$pattern" ] || grep -qE -- "$pattern" "$here/log" || fail "does not print '$pattern'" "$instead"
}

links() { # of a document, within the repository: NUMBER TAB PATH
  grep -noE '\]\([^)#: ]+' "$1" | sed -E 's/^([0-9]+):\]\(/\1\t/'
}

document() {
  doc=$1 here=$work/$(tr / _ <<<"$1")
  mkdir "$here"
  for folder in examples machines bench sim tests; do ln -s "$top/$folder" "$here/$folder"; done
  notes=$work/notes.$(tr / _ <<<"$doc")
  notes "$doc" >"$notes"
  grep -q 'isamap new-machine mine' "$doc" || (cd "$here" && isamap new-machine mine >/dev/null)
  # a note about a command that is no longer there
  while IFS=: read -r kind rest; do
    case $kind in run | skip | prints) ;; *) continue ;; esac
    text=${rest# } text=${text%% =>*} line=note
    [ "$kind" = skip ] && text=${text% (*}
    commands "$doc" | cut -f2 | grep -qxF -- "$text" || fail "a note about a command that the document does not have"
  done <"$notes"
  while IFS=$'\t' read -r line text; do one; done < <(commands "$doc")
  while IFS=$'\t' read -r line text; do [ -e "$(dirname "$doc")/$text" ] || fail "a link to what is not there"; done < <(links "$doc")
  echo "$ran $spoken $skipped $failed" >"$here.count"
}

if [ "${2:-}" ]; then documents=("${@:2}"); else documents=(README.md docs/*.md */README.md); fi
for doc in "${documents[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
  (document "$doc") &
done
wait
cat "$work"/*.count | awk -v n="${#documents[@]}" '
  { ran += $1; spoken += $2; skipped += $3; failed += $4; documents++ }
  END { print ran " commands run, " spoken " compared with their options, " skipped " skipped, " failed " failed, " documents " documents"; exit failed > 0 || documents != n || ran < 20 && n > 3 }'
