#!/usr/bin/env bash
# Who may include whom: a folder's files include nothing of ours but what this table allows.
set -u
declare -A may=(
  [ir]="ir" [onnx]="onnx ir" [machines]="machines ir" [mapper]="mapper machines ir" [scheduler]="scheduler mapper machines ir"
  [scheduler/schedule]="scheduler/schedule machines ir" [scheduler/clock]="scheduler/clock scheduler/schedule machines ir"
  [scheduler/plan]="scheduler/plan scheduler/scheduler.h scheduler/schedule mapper machines ir"
  [scheduler/emit]="scheduler/emit scheduler/plan scheduler/schedule mapper machines ir"
  [scheduler/verify]="scheduler/verify scheduler/schedule machines ir"
  [approaches]="approaches ir" [sim]="sim machines ir scheduler/schedule/schedule.h scheduler/clock"
  [backends]="backends machines ir scheduler/schedule/schedule.h scheduler/schedule/launches.h" [bench]="bench machines ir scheduler/schedule/schedule.h"
)
failed=0 files=0
for folder in "${!may[@]}"; do
  for file in "$folder"/*.[ch] "$folder"/{cpu,c,cuda,bits}/*.[ch]; do
    [ -e "$file" ] || continue
    files=$((files + 1))
    while read -r header; do
      case $header in */*) ;; *) continue ;; esac
      ok=0
      for allowed in ${may[$folder]}; do
        case $header in "$allowed" | "$allowed"/*) ok=1 ;; esac
      done
      case ${header%%/*} in ir | onnx | machines | mapper | scheduler | approaches | sim | backends | bench | tests) ;; *) ok=1 ;; esac
      [ $ok -eq 1 ] || { echo "$file may not include \"$header\""; failed=$((failed + 1)); }
    done < <(sed -nE 's/^ *# *include "([^"]+)".*/\1/p' "$file")
    grep -nE '^ *# *include "(isamap|command/)[^"]*\.h"' "$file" && { echo "$file may not include the product's headers"; failed=$((failed + 1)); }
  done
done
echo "$((files - failed)) passed, $failed failed"
[ $failed -eq 0 ] && [ $files -gt 20 ]
