import type { BuildPlan } from '../indexer/build/plan-build.ts';
import type { UpdatePlan } from '../indexer/update/plan-update.ts';
import { formatBytes, formatCount, formatDuration } from './format.ts';

/** The plan of a build as a person reads it. */
export function planReport(plan: BuildPlan | UpdatePlan): string {
  const { bytes, files, seconds } = plan;
  const about = (value: number): string => formatDuration(value * 1000);
  const lines = [
    'update' in plan
      ? updateLine(plan)
      : `${plan.folder}: about ${formatCount(plan.rows)} passages × ${plan.dimension}, ${formatCount(plan.shards)} ${plan.shards === 1 ? 'shard' : 'shards'}`,
    ...plan.corpus.map(
      ({ name, bytes: size, lines: count }) => `  ${name}: ${formatBytes(size)}, ${formatCount(count)} lines`,
    ),
    'disk',
    plan.vectors?.use === 'adopt'
      ? `  ${'vectors'.padEnd(16)} none: ${formatCount(plan.vectors.rows)} rows, ${formatBytes(plan.vectors.bytes)}, stay where they lie`
      : `  ${files.vectors.padEnd(16)} ${formatBytes(bytes.vectors)}`,
    `  ${(files.codes ?? 'no codes').padEnd(16)} ${formatBytes(bytes.codes)}`,
    ...(bytes.screen === 0 ? [] : [`  ${'screen.i8'.padEnd(16)} at most ${formatBytes(bytes.screen)}`]),
    `  ${files.passages.padEnd(16)} ${formatBytes(bytes.passages)}`,
    `  ${'together'.padEnd(16)} ${formatBytes(bytes.total)} of ${formatBytes(plan.freeBytes)} free`,
    'memory',
    `  ${'building'.padEnd(16)} ${formatBytes(plan.buildMemoryBytes)}, whatever the corpus`,
    `  ${'searching'.padEnd(16)} ${formatBytes(plan.searchMemoryBytes)} of codes, of ${formatBytes(plan.machineMemoryBytes)}`,
    'time, by a few seconds of trial on this machine',
    `  ${'scan and read'.padEnd(16)} ${about(seconds.scan + seconds.read)}`,
    plan.vectors === null
      ? `  ${'encode'.padEnd(16)} ${about(seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} passages/s of ${formatCount(Math.round(plan.tokensPerPassage))} tokens`
      : `  ${'vectors'.padEnd(16)} ${about(seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} rows/s`,
  ];
  if (plan.problems.length > 0) lines.push('does not fit', ...plan.problems.map((problem) => `  ${problem}`));
  return lines.join('\n');
}

function updateLine({ folder, shards, update }: UpdatePlan): string {
  const { kept, restored, added, removed, rows } = update;
  const inShards = shards === 0 ? '' : ` in ${formatCount(shards)} new ${shards === 1 ? 'shard' : 'shards'}`;
  return (
    `${folder}: ${formatCount(kept)} passages are there${restored === 0 ? '' : ` (${formatCount(restored)} of them removed before)`}, ` +
    `${formatCount(added)} to be embedded${inShards}, ${formatCount(removed)} to be removed; ${formatCount(rows)} rows then`
  );
}
