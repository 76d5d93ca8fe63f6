#!/bin/bash
# The whole comparison on a machine with an NVIDIA GPU, python3 with torch and 26 GB of memory for files:
#   bench/cuda_bench.sh trawl-cuda-bench OUT [SAMPLE] [ROWS]
# OUT gets check.json, search.json, baseline.json and their logs. A part that fails or takes too long does not stop the others.
# SAMPLE: a FAISS flat index of real vectors, whose mean and covariance the rows get.
set -u
bench=$(realpath "$1"); out=$(realpath "$2"); sample=${3:-}; rows=${4:-10000000}
here=$(cd "$(dirname "$0")" && pwd)
queries=${QUERIES:-1,64,1024}
folder=${FOLDER:-/dev/shm/trawl-cuda-bench}
needed=$((rows * 2400 / 1024))
free=$(df --output=avail -k "$(dirname "$folder")" | tail -1)
if [ "$free" -lt "$needed" ]; then
  folder=/tmp/trawl-cuda-bench
  mkdir -p "$folder" && mount -t tmpfs -o size=$((needed * 11 / 10))k tmpfs "$folder" && mounted=yes
fi
mkdir -p "$folder" "$out"
part() { # name seconds command...
  local name=$1 seconds=$2; shift 2
  local start=$SECONDS
  timeout "$seconds" "$@" > >(tee "$out/$name.log") 2>&1
  echo "== $name: status $?, $((SECONDS - start)) s, $SECONDS s in all"
}
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv 2>&1 | tee "$out/gpu.csv"
[ "${SKIP_CHECK:-}" ] || part check 60 "$bench" --check "${CHECK_SECONDS:-15}" --json "$out/check.json"
[ "${SKIP_ROWS:-}" ] || part rows 90 python3 "$here/cuda_baseline.py" rows --folder "$folder" --rows "$rows" --sample "$sample"
[ "${SKIP_SEARCH:-}" ] || part search "${SEARCH_SECONDS:-150}" "$bench" --folder "$folder" --rows "$rows" --queries "$queries" --sample "$sample" --json "$out/search.json" ${SEARCH_OPTIONS:-}
[ "${SKIP_BASELINE:-}" ] || part baseline 90 python3 "$here/cuda_baseline.py" search --folder "$folder" --rows "$rows" --queries "$queries" --json "$out/baseline.json"
rm -rf "${folder:?}"/*
if [ "${mounted:-}" ]; then umount "$folder"; fi
