#!/usr/bin/env bash
# No C file of the compiler names a shipped machine or one of its instructions.
set -u
names=$({ for x in machines/*.xml; do basename "$x" .xml; done
          grep -hoE '<(instruction|move)[^>]* id="[A-Za-z0-9_.]{4,}"' machines/*.xml | sed -E 's/.* id="([^"]+)".*/\1/'; } | grep -E '.{4,}' | sort -u)
pattern=$(printf '%s\n' "$names" | sed 's/[.]/\\./g' | paste -sd'|')
[ -n "$pattern" ] || { echo "no names found"; exit 1; }
if grep -nE "\"($pattern)\"" ir/*.[ch] mapper/*.[ch] scheduler/*.[ch] scheduler/*/*.[ch] approaches/*.[ch] backends/*.[ch] backends/*/*.[ch] sim/*.[ch] onnx/*.[ch] machines/*.[ch] bench/*.[ch] command/*.c ./*.c; then
  echo "0 passed, 1 failed"
  exit 1
fi
echo "1 passed, 0 failed"
