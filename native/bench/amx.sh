#!/bin/bash
# Measures the search and the encoder on a machine with AMX, on two of its cores, and writes the results to a folder.
#   [SKIP="encoder onnx"] [ROWS=1000000] [DATA=/dev/shm/trawl-amx] amx.sh RESULTS
# It expects beside itself the programs trawl-bench, trawl-bench-encoder, trawl-bf16-check, trawl-tests, int8-scan-amx (the bare prototype), onnx.mjs and a
# sample of vectors, e5_flat_sample.index: `make amx-kit` puts them together. Each part is named in SKIP to leave it out:
# pairs make prototype kernels few many tests bf16 encoder onnx
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?the folder of the results}
rows=${ROWS:-1000000}
data=${DATA:-/dev/shm/trawl-amx}
skip=" ${SKIP:-} "
mkdir -p "$out" "$data"
SECONDS=0

say() { printf '[%3d s] %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
# part NAME SECONDS COMMAND…: runs it, at most that long, with its output in NAME.txt
part() {
  local name=$1 limit=$2
  shift 2
  if [[ $skip == *" $name "* ]]; then say "$name: left out"; return; fi
  say "$name"
  timeout "$limit" "$@" > "$out/$name.txt" 2> "$out/$name.err"
  local status=$?
  [ $status = 0 ] || say "$name: exit status $status: $(tail -n 3 "$out/$name.err" | tr '\n' ' ')"
}

{ lscpu; lscpu -e 2>/dev/null; uname -r; free -g; nproc; cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list; } > "$out/machine.txt" 2>&1
grep -o 'amx_[a-z0-9]*\|avx512_bf16' /proc/cpuinfo | sort -u | tr '\n' ' ' | tee -a "$out/progress.txt"; echo

# Two allowed processors of different cores, the first core left to the system if there are enough.
mapfile -t cpus < <(
  allowed=$(taskset -pc $$ | sed 's/.*: //')
  seen=' '
  for range in ${allowed//,/ }; do
    for ((cpu = ${range%-*}; cpu <= ${range#*-}; ++cpu)); do
      first=$(sed 's/[,-].*//' "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")
      [[ $seen == *" $first "* ]] || { seen+="$first "; echo "$cpu"; }
    done
  done)
[ ${#cpus[@]} -gt 3 ] && cpus=("${cpus[@]:1}")
pair=${cpus[0]},${cpus[1]:-${cpus[0]}}
# A virtual machine may call two threads of a core two cores, so the fastest of a few pairs is taken.
if [[ $skip != *" pairs "* && ${#cpus[@]} -gt 3 ]]; then
  best=0
  for other in 1 2 $((${#cpus[@]} / 2)) $((${#cpus[@]} - 1)); do
    rate=$(timeout 10 taskset -c "${cpus[0]},${cpus[$other]}" "$here/int8-scan-amx" 100000 2 | sed -n 's/.*Q=512.* \([0-9.]*\) Mdots.*/\1/p')
    say "pair ${cpus[0]},${cpus[$other]}: ${rate:-failed} M dot products/s"
    rate=${rate%.*}
    if ((${rate:-0} * 100 > best * 103)); then best=$rate pair=${cpus[0]},${cpus[$other]}; fi
  done
fi
say "processors $pair"
echo "$pair" > "$out/pair.txt"
two=(taskset -c "$pair")
one=(taskset -c "${pair%,*}")

bench=("$here/trawl-bench" --rows "$rows" --sample "$here/e5_flat_sample.index" --keep "$data" --prefilter 320)
part make 60 "${bench[@]}" --isa avx512-vnni --queries ""
part prototype 20 "${two[@]}" "$here/int8-scan-amx" "$rows" 2
part kernels 20 "${one[@]}" "$here/trawl-bench" --kernels 1 --isa avx512-vnni,amx-before,amx,amx-tests,amx-prefetched,amx-streamed,amx-tests-prefetched --repeats 5
part few 35 "${two[@]}" "${bench[@]}" --threads 2 --isa amx-before,amx,amx-tests,avx512-vnni --queries 1,16,64,128 --repeats 2
part many 35 "${two[@]}" "${bench[@]}" --threads 2 --isa amx-before,amx,amx-tests --queries 256,512 --repeats 2 --warm 0
part tests 25 "$here/trawl-tests" kernel encoder
part bf16 10 "${one[@]}" "$here/trawl-bf16-check"
encoder() {
  for shape in '6 384' '12 768'; do
    set -- $shape
    "${two[@]}" "$here/trawl-bench-encoder" --layers "$1" --hidden "$2" --tokens 128,12 --runs 5 --isa amx-bf16,amx-bf16-plain,avx512-bf16,steps --threads 1,2 \
      --file "$data/encoder.bin"
  done
}
export -f encoder
part encoder 45 bash -c "here='$here' data='$data' two=(${two[*]}); encoder"
if [ -d "${MODELS:-/opt/m/models}" ]; then
  part onnx 40 "${one[@]}" "${NODE:-/opt/kit/trawl/node}" "$here/onnx.mjs" "${TRAWL:-/opt/kit/trawl}" "${MODELS:-/opt/m/models}"
fi
rm -f "$data/${rows}x"* "$data/encoder.bin"
say done
