# tests/sample.h for scripts: of the lines that it reads, each ISAMAP_EVERY-th, or all.
sampled() { awk -v n="${ISAMAP_EVERY:-1}" 'NR % n == 0'; }
