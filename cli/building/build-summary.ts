import type { BuildSummary } from '../../indexer/building/build-index.ts';
import type { JobSummary } from '../../indexer/building/build-shard-job.ts';
import type { StageTimes } from '../../indexer/stage-clock.ts';
import type { RemoveSummary } from '../../indexer/update/remove-passages.ts';
import type { UpdateSummary } from '../../indexer/update/update-index.ts';
import { formatBytes, formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { Bm25Record } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';

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
  return [
    `${folder}: ${formatNumberOf(removed, 'passage')} deleted`,
    liveRowsLine(manifest),
    ...(unknownIds === 0
      ? []
      : [
          `  ${formatNumberOf(unknownIds, 'id')} without a passage: ${unknownExamples.map((id) => JSON.stringify(id)).join(', ')}${unknownIds > unknownExamples.length ? ' …' : ''}`,
        ]),
  ];
}

function liveRowsLine({ rows, tombstones, shards }: IndexManifest): string {
  const removed = tombstones?.rows ?? 0;
  return `  ${formatNumberOf(rows - removed, 'passage')} in ${formatNumberOf(shards.length, 'shard')}, and ${formatNumberOf(removed, 'deleted row')}`;
}

export function textSummary(summary: BuildSummary): string[] {
  const { manifest, duplicates, passagesWithoutId } = summary;
  return [
    size(summary, manifest),
    times(summary, manifest),
    ...overridden(manifest),
    ...remarks(manifest, summary.skippedExamples, passagesWithoutId),
    ...duplicateLines(duplicates),
  ];
}

export function textJobSummary(summary: JobSummary): string[] {
  const { folder, manifest, wasComplete, complete, shards, passagesWithoutId } = summary;
  const next =
    complete === shards
      ? 'all shards are complete: trawl merge joins them into an index'
      : `${complete} of ${shards} shards in this folder are complete`;
  if (wasComplete) return [`${folder} was already complete; ${next}.`];
  return [
    size(summary, manifest),
    times(summary, manifest),
    ...overridden(manifest),
    ...remarks(manifest, summary.skippedExamples, passagesWithoutId),
    `  ${next}`,
  ];
}

export function duplicateLines(duplicates: Duplicates): string[] {
  if (duplicates.count === 0) return [];
  return [
    `  ${formatNumberOf(duplicates.count, 'passage')} with the id of an earlier passage:`,
    ...duplicates.examples.map(({ id, lines: at }) => `    ${JSON.stringify(id)} on lines ${at.join(', ')}`),
  ];
}

function size({ folder }: { folder: string }, manifest: Manifest): string {
  const { rows, dimension, model, bm25 } = manifest;
  const shards = 'shards' in manifest && manifest.shards.length > 1 ? ` in ${manifest.shards.length} shards` : '';
  const parts = [
    `${folder}: ${formatNumberOf(rows, 'passage')}${model === null ? '' : ` × ${dimension}`}${shards}`,
    ...(model === null ? [] : [`${formatBytes(rows * dimension * 4)} of vectors`, `model ${model.name}`]),
    ...(bm25 === undefined ? [] : [invertedIndex(bm25.made)]),
  ];
  return parts.join(', ');
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
  if (model === null) {
    return (
      `  read ${formatDuration(stageMs.scan + stageMs.read)}, words ${formatDuration(stageMs.words ?? 0)}, ` +
      `finished ${formatDuration(stageMs.finish)}`
    );
  }
  if (stageMs.vectors !== undefined) {
    const vectorsS = Math.max(stageMs.vectors, 0.001) / 1000;
    return (
      `  read ${formatDuration(stageMs.scan + stageMs.read)}, vectors ${formatDuration(stageMs.vectors)} ` +
      `(${formatCount(Math.round((rows - resumedRows) / vectorsS))} rows/s), finished ${formatDuration(stageMs.finish)}`
    );
  }
  const encodeS = Math.max(stageMs.encode, 0.001) / 1000;
  const resumed = resumedRows === 0 ? '' : `, ${formatCount(resumedRows)} by an earlier run`;
  return (
    `  read ${formatDuration(stageMs.scan + stageMs.read)}, encoded ${formatDuration(stageMs.encode)} ` +
    `(${formatCount(Math.round((rows - resumedRows) / encodeS))} passages/s, ${formatCount(Math.round(tokens / encodeS))} tokens/s${resumed}), ` +
    `finished ${formatDuration(stageMs.finish)}`
  );
}

function overridden({ model }: Manifest): string[] {
  const set = model?.overrides ?? [];
  return set.length === 0 ? [] : [`  set on the command line: ${set.join(', ')}`];
}

function remarks({ corpus, model }: Manifest, skippedExamples: readonly string[], passagesWithoutId: number): string[] {
  const lines: string[] = [];
  if (corpus.truncatedPassages > 0) {
    lines.push(
      `  ${formatNumberOf(corpus.truncatedPassages, 'passage')} truncated to ${model?.maxTokens.passage} tokens`,
    );
  }
  if (model?.endpoint?.overlong === 'truncated' || model?.endpoint?.overlong === 'unknown') {
    lines.push('  passages that the endpoint truncated are not counted: it does not report them');
  }
  if (corpus.skippedLines > 0) {
    lines.push(
      `  ${formatNumberOf(corpus.skippedLines, 'bad line')} skipped:`,
      ...skippedExamples.map((example) => `    ${example}`),
    );
  }
  if (passagesWithoutId > 0) {
    lines.push(
      `  ${formatNumberOf(passagesWithoutId, 'passage')} without an id: judgements and clients cannot refer to them`,
    );
  }
  return lines;
}
