#!/usr/bin/env bash
# Completion in bash and zsh, and the man page: made from the table of options, and what they say is right.
set -u
build=$(realpath "$1")
export PATH="$build:$PATH" LC_ALL=C
failed=0 passed=0
check() { if "${@:2}"; then passed=$((passed + 1)); else echo "FAILED: $1"; failed=$((failed + 1)); fi; }

eval "$(isamap --completion bash)"
offers() { # WORDS...: what is offered for the last
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _isamap 2>/dev/null
  printf '%s\n' "${COMPREPLY[@]}" | sort
}
is() { diff <(printf '%s\n' "${@:2}" | sort) <(echo "$1"); }
has() { grep -qxF -- "$2" <<<"$1" || { echo "no '$2' among: $1"; return 1; }; }
check "commands" is "$(offers isamap s)" sim sweep show
check "options of a command" is "$(offers isamap map --a)" --all
check "an option of another command" is "$(offers isamap map --rt)" ''
check "machines" has "$(offers isamap run x.isam -m ed)" edge16
check "machine files" has "$(offers isamap run x.isam --machine machines/edge)" machines/edge16.xml
check "approaches" is "$(offers isamap run x.isam --approach h)" heuristic
check "programs" is "$(offers isamap run examples/f32/gmm)" examples/f32/gmm.isam
check "folders" has "$(offers isamap run exam)" examples
check "no other files" is "$(offers isamap run README)" ''
check "suites" has "$(offers isamap bench bench/squ)" bench/squares.csv
for c in check map compile run sim sweep bench show new-machine calibrate; do
  wanted=$(isamap $c --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort)
  check "all options of $c" is "$(offers isamap $c --)" $wanted
done
check "an unknown shell" bash -c '! isamap --completion fish 2>/dev/null'
if command -v zsh >/dev/null; then check "zsh reads it" zsh -n <(isamap --completion zsh); fi
man=$(isamap --man)
if command -v groff >/dev/null; then check "groff has nothing to say" bash -c '[ -z "$(groff -man -Tutf8 -ww -z 2>&1 <<<"$0")" ]' "$man"; fi
check "the man page has each option" bash -c 'for o in $(isamap sim --help | grep -oE -- "--[a-z-]+ " | tr -d -); do grep -q "$o" <<<"$(tr -d "\\\\-" <<<"$0")" || { echo "no $o"; exit 1; }; done' "$man"
check "installed files" bash -c 'cmp -s <(isamap --man) "$0"/words/isamap.1 && cmp -s <(isamap --completion bash) "$0"/words/isamap.bash && cmp -s <(isamap --completion zsh) "$0"/words/_isamap' "$build"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
