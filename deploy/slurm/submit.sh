#!/bin/bash
# Builds an index with a Slurm job array, one task per shard, and merges the shards when all are complete:
#
#   deploy/slurm/submit.sh [options of sbatch] -- SHARDS OUT CORPUS... [options of trawl index]
#   deploy/slurm/submit.sh --partition cpu --cpus-per-task 16 -- 21 indexes/wiki18 wiki-18.jsonl.gz --model models/e5-base-v2
#
# Paths are relative to the current folder, which must be on a file system that every node mounts. TRAWL is the command, `trawl`
# by default. For a checkout set TRAWL=/path/to/trawl/bin/trawl; npx does not forward signals. Submitting the same command again
# resumes the build.
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
