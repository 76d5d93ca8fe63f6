#!/bin/bash
# The whole comparison on a machine with an NVIDIA GPU, python3 with torch and 26 GB of memory for files:
#   bench/cuda_bench.sh trawl-cuda-bench OUT [SAMPLE] [ROWS]
# OUT gets check.json, search.json, baseline.json and their logs. A part that fails or takes too long does not stop the others.
# SAMPLE: a FAISS flat index of real vectors, whose mean and covariance the rows get. The files are in a new folder below /dev/shm, or
# in a tmpfs that is mounted on a new folder below /tmp if /dev/shm is too small. Both are removed at the end, also after Ctrl-C.
#   TRAWL_BENCH_QUERIES          queries of a search (1,8,64,1024)
#   TRAWL_BENCH_CHECK_SECONDS    time of the comparison over small indexes (15)
#   TRAWL_BENCH_SEARCH_SECONDS   limit of the searches (150)
#   TRAWL_BENCH_SEARCH_OPTIONS   further options of trawl-cuda-bench for them, divided by spaces
#   TRAWL_BENCH_SKIP_CHECK, TRAWL_BENCH_SKIP_ROWS, TRAWL_BENCH_SKIP_SEARCH, TRAWL_BENCH_SKIP_BASELINE: 1 leaves a part out
set -u
if [ $# -lt 2 ]; then
  echo "usage: $0 trawl-cuda-bench OUT [SAMPLE] [ROWS]" >&2
  exit 2
fi
bench=$(realpath "$1"); out=$(realpath -m "$2"); sample=${3:-}; rows=${4:-10000000}
here=$(cd "$(dirname "$0")" && pwd)
queries=${TRAWL_BENCH_QUERIES:-1,8,64,1024}
needed=$((rows * 2400 / 1024))
folder='' mounted=''
end() {
  trap - EXIT INT TERM
  local running
  running=$(jobs -pr)
  if [ "$running" ]; then
    # To the group that timeout leads: a timeout that has just begun its program may end without passing the signal on.
    kill -- "-$running" 2> /dev/null || kill "$running" 2> /dev/null
    wait "$running" 2> /dev/null
    for _ in {1..50}; do
      kill -0 -- "-$running" 2> /dev/null || break
      sleep 0.1
    done
  fi
  if [ "$mounted" ]; then umount "$folder"; fi
  if [ "$folder" ]; then rm -rf --one-file-system "$folder"; fi
}
trap end EXIT
trap 'end; exit 130' INT
trap 'end; exit 143' TERM
mkdir -p "$out" || exit 1
if [ "$(df --output=avail -k /dev/shm | tail -1)" -ge "$needed" ]; then
  folder=$(mktemp -d /dev/shm/trawl-cuda-bench.XXXXXXXX) || exit 1
else
  folder=$(mktemp -d /tmp/trawl-cuda-bench.XXXXXXXX) || exit 1
  mount -t tmpfs -o size=$((needed * 11 / 10))k tmpfs "$folder" || exit 1
  mounted=yes
fi
part() { # name seconds command...
  local name=$1 seconds=$2; shift 2
  local start=$SECONDS status
  (exec timeout "$seconds" "$@") > >(tee "$out/$name.log") 2>&1 &
  wait $!  # a trap interrupts it
  status=$?
  echo "== $name: status $status, $((SECONDS - start)) s, $SECONDS s in all"
}
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv 2>&1 | tee "$out/gpu.csv"
[ "${TRAWL_BENCH_SKIP_CHECK:-}" ] || part check 60 "$bench" --check "${TRAWL_BENCH_CHECK_SECONDS:-15}" --json "$out/check.json"
[ "${TRAWL_BENCH_SKIP_ROWS:-}" ] || part rows 90 python3 "$here/cuda_baseline.py" rows --folder "$folder" --rows "$rows" --sample "$sample"
# shellcheck disable=SC2086 # the options are several words
[ "${TRAWL_BENCH_SKIP_SEARCH:-}" ] || part search "${TRAWL_BENCH_SEARCH_SECONDS:-150}" "$bench" --folder "$folder" --rows "$rows" --queries "$queries" --sample "$sample" --json "$out/search.json" ${TRAWL_BENCH_SEARCH_OPTIONS:-}
[ "${TRAWL_BENCH_SKIP_BASELINE:-}" ] || part baseline 90 python3 "$here/cuda_baseline.py" search --folder "$folder" --rows "$rows" --queries "$queries" --json "$out/baseline.json"
