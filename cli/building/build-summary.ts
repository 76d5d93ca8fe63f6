import type { SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import type { BuildSummary } from '../../indexer/building/build-index.ts';
import type { JobSummary } from '../../indexer/building/build-shard-job.ts';
import type { BuildPlan } from '../../indexer/building/plan-build.ts';
import type { StageTimes } from '../../indexer/building/stages.ts';
import type { UpdatePlan } from '../../indexer/update/plan-update.ts';
import type { RemoveSummary } from '../../indexer/update/remove-passages.ts';
import type { UpdateSummary } from '../../indexer/update/update-index.ts';
import { formatBytes, formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { Bm25Record } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { forecastLines } from '../output/forecast-lines.ts';
import { lines } from '../output/lines.ts';

type Manifest = IndexManifest | ShardManifest;

/** The JSON fields of every summary. */
export function jsonFacts({ rows, dimension, metric, generation, model, corpus }: Manifest): object {
  return { rows, dimension, metric, generation, model: model?.name ?? null, corpus };
}

export function jsonSummary({ manifest, ...summary }: BuildSummary): object {
  return { built: true, ...summary, ...jsonFacts(manifest), shards: manifest.shards.length };
}

export function jsonJobSummary({ manifest, wasComplete, ...summary }: JobSummary): object {
  return { built: !wasComplete, ...summary, ...jsonFacts(manifest) };
}

export function jsonUpdateSummary({ manifest, ...summary }: UpdateSummary): object {
  return {
    ...summary,
    ...jsonFacts(manifest),
    deletedRows: manifest.tombstones?.rows ?? 0,
    shards: manifest.shards.length,
  };
}

export function jsonRemoveSummary({ manifest, ...summary }: RemoveSummary): object {
  return { ...summary, ...jsonFacts(manifest), deletedRows: manifest.tombstones?.rows ?? 0 };
}

export function textUpdateSummary(summary: UpdateSummary): string[] {
  const { folder, manifest, changed, kept, restored, added, removed, duplicates, stageMs } = summary;
  if (!changed) return [`${folder} already has these ${formatCount(kept)} passages; nothing to do.`];
  const { scan, compare = 0, read } = stageMs;
  return [
    `${folder}: ${formatNumberOf(added, 'passage')} added, ${formatCount(removed)} deleted, ${formatCount(kept)} kept` +
      (restored === 0 ? '' : ` (${formatCount(restored)} of them had been deleted and are live again)`),
    liveRowsLine(manifest),
    `  compared ${formatDuration(scan + compare)}, read ${formatDuration(read)}, encoded ${formatDuration(stageMs.encode)}, finished ${formatDuration(stageMs.finish)}`,
    ...(manifest.corpus.skippedLines > 0 ? summary.skippedExamples.map((example) => `    skipped: ${example}`) : []),
    ...duplicateLines(duplicates),
  ];
}

export function textRemoveSummary({ folder, manifest, removed, unknownIds, unknownExamples }: RemoveSummary): string[] {
  const examples = unknownExamples.map((id) => JSON.stringify(id)).join(', ');
  const more = unknownIds > unknownExamples.length ? ' …' : '';
  return lines(
    `${folder}: ${formatNumberOf(removed, 'passage')} deleted`,
    liveRowsLine(manifest),
    unknownIds > 0 && `  ${formatNumberOf(unknownIds, 'id')} without a passage: ${examples}${more}`,
  );
}

function liveRowsLine({ rows, tombstones, shards }: IndexManifest): string {
  const removed = tombstones?.rows ?? 0;
  return `  ${formatNumberOf(rows - removed, 'passage')} in ${formatNumberOf(shards.length, 'shard')}, and ${formatNumberOf(removed, 'deleted row')}`;
}

export function textSummary(summary: BuildSummary): string[] {
  return [...builtLines(summary), ...duplicateLines(summary.duplicates)];
}

export function textJobSummary(summary: JobSummary): string[] {
  const { folder, wasComplete, complete, shards } = summary;
  const next =
    complete === shards
      ? 'all shards are complete: trawl merge joins them into an index'
      : `${complete} of ${shards} shards in this folder are complete`;
  if (wasComplete) return [`${folder} was already complete; ${next}.`];
  return [...builtLines(summary), `  ${next}`];
}

/** What was built, how long it took, and what is remarkable about it. */
function builtLines({ folder, manifest, skippedExamples, passagesWithoutId, ...work }: BuildSummary | JobSummary) {
  const { corpus, model } = manifest;
  const overrides = model?.overrides ?? [];
  const overlong = model?.endpoint?.overlong;
  return lines(
    size(folder, manifest),
    times(work, manifest),
    overrides.length > 0 && `  set on the command line: ${overrides.join(', ')}`,
    corpus.truncatedPassages > 0 &&
      `  ${formatNumberOf(corpus.truncatedPassages, 'passage')} truncated to ${model?.maxTokens.passage} tokens`,
    (overlong === 'truncated' || overlong === 'unknown') &&
      '  passages that the endpoint truncated are not counted: it does not report them',
    corpus.skippedLines > 0 && `  ${formatNumberOf(corpus.skippedLines, 'bad line')} skipped:`,
    ...(corpus.skippedLines > 0 ? skippedExamples.map((example) => `    ${example}`) : []),
    passagesWithoutId > 0 &&
      `  ${formatNumberOf(passagesWithoutId, 'passage')} without an id: judgements and clients cannot refer to them`,
  );
}

export function duplicateLines(duplicates: Duplicates): string[] {
  if (duplicates.count === 0) return [];
  return [
    `  ${formatNumberOf(duplicates.count, 'passage')} with the id of an earlier passage:`,
    ...duplicates.examples.map(({ id, lines: at }) => `    ${JSON.stringify(id)} on lines ${at.join(', ')}`),
  ];
}

function size(folder: string, manifest: Manifest): string {
  const { rows, dimension, model, bm25 } = manifest;
  const shards = 'shards' in manifest && manifest.shards.length > 1 ? ` in ${manifest.shards.length} shards` : '';
  return lines(
    `${folder}: ${formatNumberOf(rows, 'passage')}${model === null ? '' : ` × ${dimension}`}${shards}`,
    model !== null && `${formatBytes(rows * dimension * 4)} of vectors, model ${model.name}`,
    bm25 !== undefined && invertedIndex(bm25.made),
  ).join(', ');
}

function invertedIndex({ analyser, fields }: Bm25Record): string {
  return fields.length === 1
    ? `inverted index (${analyser})`
    : `inverted indexes of ${fields.join(' and ')} (${analyser})`;
}

function times(
  { tokens, resumedRows, stageMs }: { tokens: number; resumedRows: number; stageMs: StageTimes },
  { rows, model }: Manifest,
): string {
  const perSecond = (count: number, ms: number): string =>
    formatCount(Math.round((1000 * count) / Math.max(ms, 0.001)));
  const made = (): string => {
    const { words = 0, vectors, encode } = stageMs;
    if (model === null) return `words ${formatDuration(words)}`;
    const built = rows - resumedRows;
    if (vectors !== undefined) return `vectors ${formatDuration(vectors)} (${perSecond(built, vectors)} rows/s)`;
    const resumed = resumedRows === 0 ? '' : `, ${formatCount(resumedRows)} by an earlier run`;
    const rates = `${perSecond(built, encode)} passages/s, ${perSecond(tokens, encode)} tokens/s`;
    return `encoded ${formatDuration(encode)} (${rates}${resumed})`;
  };
  return `  read ${formatDuration(stageMs.scan + stageMs.read)}, ${made()}, finished ${formatDuration(stageMs.finish)}`;
}

/** The output of `--plan`. */
export function planReport(plan: BuildPlan | UpdatePlan, search: SearchForecast | null): string {
  const { bytes, files, seconds } = plan;
  return lines(
    'update' in plan
      ? updateLine(plan)
      : `${plan.folder}: about ${formatCount(plan.rows)} passages${plan.dimension === 0 ? '' : ` × ${plan.dimension}`}, ${formatCount(plan.shards)} ${plan.shards === 1 ? 'shard' : 'shards'}`,
    ...plan.corpus.map(
      ({ name, bytes: size, lines: count }) => `  ${name}: ${formatBytes(size)}, ${formatCount(count)} lines`,
    ),
    'disk',
    ...(plan.dimension === 0 ? [] : vectorFileLines(plan)),
    bytes.words > 0 && `${labelled('inverted index')}${formatBytes(bytes.words)}`,
    `${labelled(files.passages)}${formatBytes(bytes.passages)}`,
    `${labelled('total')}${formatBytes(bytes.total)} of ${formatBytes(plan.freeBytes)} free`,
    'memory',
    `${labelled('building')}${formatBytes(plan.buildMemoryBytes)}, for any corpus size`,
    plan.dimension > 0 && `${labelled('searching')}${searchMemory(plan)} of ${formatBytes(plan.memoryLimitBytes)}`,
    'time, estimated from a few seconds on this machine',
    `${labelled('update' in plan ? 'scan and compare' : 'scan and read')}${formatDuration(1000 * (seconds.scan + seconds.read))}`,
    plan.dimension > 0 && vectorTimeLine(plan),
    ...(search === null ? [] : forecastLines(search)),
    plan.problems.length > 0 && 'does not fit',
    ...plan.problems.map((problem) => `  ${problem}`),
  ).join('\n');
}

function vectorFileLines(plan: BuildPlan): string[] {
  const { bytes, files } = plan;
  return [
    plan.vectors?.use === 'adopt'
      ? `${labelled('vectors')}none: ${formatCount(plan.vectors.rows)} rows, ${formatBytes(plan.vectors.bytes)}, stay in their files`
      : `${labelled(files.vectors)}${formatBytes(bytes.vectors)}`,
    `${labelled(files.codes ?? 'no codes')}${formatBytes(bytes.codes)}`,
    ...(bytes.prefilter === 0 ? [] : [`${labelled('prefilter.i8')}at most ${formatBytes(bytes.prefilter)}`]),
  ];
}

function vectorTimeLine(plan: BuildPlan): string {
  const { seconds } = plan;
  return plan.vectors === null
    ? `${labelled('encode')}${formatDuration(1000 * seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} passages/s of ${formatCount(Math.round(plan.tokensPerPassage))} tokens`
    : `${labelled('vectors')}${formatDuration(1000 * seconds.encode)} at ${formatCount(Math.round(plan.passagesPerS))} rows/s`;
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

function labelled(label: string): string {
  return `  ${label.padEnd(16)} `;
}
