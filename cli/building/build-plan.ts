import type { SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import type { BuildPlan } from '../../indexer/building/plan-build.ts';
import type { UpdatePlan } from '../../indexer/update/plan-update.ts';
import { formatBytes, formatCount, formatDuration } from '../../src/base/format.ts';
import { forecastLines } from '../output/forecast-lines.ts';

/** The output of `--plan`. */
export function planReport(plan: BuildPlan | UpdatePlan, search: SearchForecast | null): string {
  const { bytes, files, seconds } = plan;
  const about = (value: number): string => formatDuration(value * 1000);
  const lines = [
    'update' in plan
      ? updateLine(plan)
      : `${plan.folder}: about ${formatCount(plan.rows)} passages${plan.dimension === 0 ? '' : ` × ${plan.dimension}`}, ${formatCount(plan.shards)} ${plan.shards === 1 ? 'shard' : 'shards'}`,
    ...plan.corpus.map(
      ({ name, bytes: size, lines: count }) => `  ${name}: ${formatBytes(size)}, ${formatCount(count)} lines`,
    ),
    'disk',
    ...(plan.dimension === 0 ? [] : vectorFileLines(plan)),
    ...(bytes.words === 0 ? [] : [`  ${'inverted index'.padEnd(16)} ${formatBytes(bytes.words)}`]),
    `  ${files.passages.padEnd(16)} ${formatBytes(bytes.passages)}`,
    `  ${'total'.padEnd(16)} ${formatBytes(bytes.total)} of ${formatBytes(plan.freeBytes)} free`,
    'memory',
    `  ${'building'.padEnd(16)} ${formatBytes(plan.buildMemoryBytes)}, for any corpus size`,
    ...(plan.dimension === 0
      ? []
      : [`  ${'searching'.padEnd(16)} ${searchMemory(plan)} of ${formatBytes(plan.memoryLimitBytes)}`]),
    'time, estimated from a few seconds on this machine',
    `  ${('update' in plan ? 'scan and compare' : 'scan and read').padEnd(16)} ${about(seconds.scan + seconds.read)}`,
    ...(plan.dimension === 0 ? [] : [vectorTimeLine(plan)]),
  ];
  if (search !== null) lines.push(...forecastLines(search));
  if (plan.problems.length > 0) lines.push('does not fit', ...plan.problems.map((problem) => `  ${problem}`));
  return lines.join('\n');
}

function vectorFileLines(plan: BuildPlan): string[] {
  const { bytes, files } = plan;
  return [
    plan.vectors?.use === 'adopt'
      ? `  ${'vectors'.padEnd(16)} none: ${formatCount(plan.vectors.rows)} rows, ${formatBytes(plan.vectors.bytes)}, stay in their files`
      : `  ${files.vectors.padEnd(16)} ${formatBytes(bytes.vectors)}`,
    `  ${(files.codes ?? 'no codes').padEnd(16)} ${formatBytes(bytes.codes)}`,
    ...(bytes.prefilter === 0 ? [] : [`  ${'prefilter.i8'.padEnd(16)} at most ${formatBytes(bytes.prefilter)}`]),
  ];
}

function vectorTimeLine(plan: BuildPlan): string {
  const { seconds } = plan;
  const about = (value: number): string => formatDuration(value * 1000);
  return plan.vectors === null
    ? `  ${'encode'.padEnd(16)} ${about(seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} passages/s of ${formatCount(Math.round(plan.tokensPerPassage))} tokens`
    : `  ${'vectors'.padEnd(16)} ${about(seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} rows/s`;
}

function updateLine({ folder, shards, update }: UpdatePlan): string {
  const { kept, restored, added, removed, rowsAfter } = update;
  const inShards = shards === 0 ? '' : ` in ${formatCount(shards)} new ${shards === 1 ? 'shard' : 'shards'}`;
  return (
    `${folder}: ${formatCount(kept)} passages to keep${restored === 0 ? '' : ` (${formatCount(restored)} of them currently deleted)`}, ` +
    `${formatCount(added)} to embed${inShards}, ${formatCount(removed)} to delete; ${formatCount(rowsAfter)} rows afterwards`
  );
}

/** A range, because whether prefilters are worthwhile depends on the vectors. */
function searchMemory({ searchMemoryBytes, searchMemoryBytesWithoutPrefilter }: BuildPlan): string {
  if (searchMemoryBytes === searchMemoryBytesWithoutPrefilter) return formatBytes(searchMemoryBytes);
  return `at most ${formatBytes(searchMemoryBytes)} (${formatBytes(searchMemoryBytesWithoutPrefilter)} without prefilters)`;
}
