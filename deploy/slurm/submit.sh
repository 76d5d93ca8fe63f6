#!/bin/bash
# Builds an index as a Slurm job array with one task a shard, and merges it when all of them are complete:
#
#   deploy/slurm/submit.sh [options of sbatch] -- SHARDS OUT CORPUS... [options of trawl index]
#   deploy/slurm/submit.sh --partition cpu --cpus-per-task 16 -- 21 indexes/wiki18 wiki-18.jsonl.gz --model models/e5-base-v2
#
# Paths are seen from the current folder, which every node has to see. TRAWL is the command, by default `trawl`; for a
# checkout TRAWL="node /path/to/trawl/dist/cli/trawl.js" (not npx, which does not hand signals on). Submitting the same
# again goes on with what is there.
set -euo pipefail

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options+=("$1")
  shift
done
if [ $# -lt 4 ] || ! [[ $2 =~ ^[1-9][0-9]*$ ]]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
shards=$2
out=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

array=$(sbatch --parsable "${options[@]}" --array="0-$((shards - 1))" "$here/shard.sbatch" "$shards" "$out" "$@")
array=${array%%;*}
merge=$(sbatch --parsable "${options[@]}" --dependency="afterok:$array" --kill-on-invalid-dep=yes "$here/merge.sbatch" "$out")
echo "shards $array merge ${merge%%;*}"
