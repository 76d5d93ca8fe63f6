#!/bin/bash
# Tests the AMX kernels of searches and encoders on a machine with AMX, measures both on two of its cores, and writes the results to a folder.
#   [SAMPLE=flat.index] [ROWS=1000000] [DATA=/dev/shm/trawl-amx] amx.sh RESULTS
# `make amx-kit` puts this script beside the static programs that it needs. Without AMX it measures AVX-512 VNNI alone.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?the folder of the results}
data=${DATA:-/dev/shm/trawl-amx}
mkdir -p "$out" "$data"

# part NAME SECONDS COMMAND…: runs it, at most that long, with its output in NAME.txt
part() {
  local name=$1 limit=$2
  shift 2
  echo "[$SECONDS s] $name"
  timeout "$limit" "$@" > "$out/$name.txt" 2> "$out/$name.err" || echo "$name: exit status $?: $(tail -n 3 "$out/$name.err" "$out/$name.txt" | tr '\n' ' ')"
}

{ lscpu; uname -r; free -g; } > "$out/machine.txt" 2>&1
isas=avx512-vnni
if grep -q amx_int8 /proc/cpuinfo; then isas=amx,avx512-vnni,best; else echo "This processor has no AMX: only avx512-vnni is measured."; fi

# Two processors of different cores, the first core left to the system if there are enough.
mapfile -t cpus < <(
  allowed=$(taskset -pc $$ | sed 's/.*: //')
  seen=' '
  for range in ${allowed//,/ }; do
    for ((cpu = ${range%-*}; cpu <= ${range#*-}; ++cpu)); do
      first=$(sed 's/[,-].*//' "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")
      [[ $seen == *" $first "* ]] || { seen+="$first "; echo "$cpu"; }
    done
  done)
[ ${#cpus[@]} -gt 2 ] && cpus=("${cpus[@]:1}")
two=(taskset -c "${cpus[0]},${cpus[1]:-${cpus[0]}}")
echo "processors ${two[2]}"

bench=("$here/trawl-bench" --rows "${ROWS:-1000000}" --keep "$data" --prefilter 320 --prefilter-always 1 --threads 2)
[ -n "${SAMPLE:-}" ] && bench+=(--sample "$SAMPLE")
part tests 60 "$here/trawl-tests" kernel encoder int8
# Encoders in int8 with MiniLM's shape and with BERT-base's width, on one core.
for shape in "384 6" "768 4"; do
  part "encoder_${shape% *}" 30 taskset -c "${cpus[0]}" "$here/trawl-bench-encoder" --precision int8 --hidden "${shape% *}" --layers "${shape#* }" --tokens 128,12 --threads 1 --isa "$isas"
done
part kernels 30 taskset -c "${cpus[0]}" "$here/trawl-bench" --kernels 1 --isa "$isas"
part files 120 "${bench[@]}" --isa "${isas%%,*}" --queries ""
part few 60 "${two[@]}" "${bench[@]}" --isa "$isas" --queries 1,16,64
part many 90 "${two[@]}" "${bench[@]}" --isa "$isas" --queries 128,256,512 --repeats 3
rm -f "$data"/*x768.*
echo "[$SECONDS s] done"
