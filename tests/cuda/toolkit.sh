# For the tests that read machine code. nvdisasm: of the toolkit, or of the Python package nvidia-cuda-nvdisasm; empty where there is none.
nvdisasm=$(command -v nvdisasm || python3 -c 'import glob, site; print((glob.glob(site.getsitepackages()[0] + "/nvidia/**/bin/nvdisasm", recursive=True) + [""])[0])' 2>/dev/null)

# planned FILE.cu: for each kernel with matrix instructions, its name and how many of them a warp executes in one turn of all loops that are left, as the calls say:
# of a tile of M rows, N columns and K deep, all warps take equal parts, 16 rows and 8 columns at a time; each of two groups of warps half of the rows or columns, 64 rows
# at a time. 16 deep, bytes 32. Of a tile that is stored in part the compiler leaves out instructions whose results nobody reads: such lines end with `part`.
planned() {
  awk '/__global__/ { kernel = $0; sub(/\(unsigned.*|\(\).*/, "", kernel); sub(/.* /, "", kernel) }
    /units \*\/$/ { warps = $0; sub(/\).*/, "", warps); sub(/.* /, "", warps); warps /= 32 }
    /^ +emit_[0-9]+_st_[0-9]+x[0-9]+_/ {
      n = split($0, word, ", "); split($1, of, "_"); split(of[4], size, "x")
      if (word[n - 1] ~ /^[0-9]+$/ && (word[n - 2] < size[1] || word[n - 1] < size[2])) part[kernel] = " part" }
    /^ +emit_[0-9]+_(m16n8k|block_|wgmma_)/ {
      call = $1; sub(/^emit_[0-9]+_/, "", call); sub(/\(.*/, "", call)
      n = split($0, word, ", "); depth = word[n - 1]; deep = call ~ /8$/ ? 32 : 16
      split(call, of, "_"); split(of[2], size, "x")
      if (call ~ /^m16n8k/) count[kernel] += 1
      else if (call ~ /^block_/) count[kernel] += size[1] * size[2] / 128 / warps * depth / deep
      else count[kernel] += (size[1] > 128 ? size[1] / 128 : 1) * depth / deep }
    END { for (k in count) print k, count[k] part[k] }' "$1" | sort
}

# as_planned PLANNED FOUND: the same kernels, as many instructions in each, or fewer where a part is stored
as_planned() {
  awk 'NR == FNR { want[$1] = $2; part[$1] = $3; kernels++; next }
    { if (!($1 in want) || $2 > want[$1] || ($2 < want[$1] && part[$1] == "")) bad = 1; kernels-- }
    END { exit bad || kernels != 0 }' "$1" "$2"
}

# found FILE.cubin: the same of the machine code
found() {
  "$nvdisasm" -c "$1" | awk '/\.section.*\.text\./ { kernel = $2; sub(/^\.text\./, "", kernel); sub(/,.*/, "", kernel) }
    / (HMMA|IMMA|HGMMA|IGMMA)\./ { count[kernel]++ }
    END { for (k in count) print k, count[k] }' | sort
}
