import { basename, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import type { Build } from '../building/build.ts';
import { storedRow } from '../building/encode-passages.ts';
import type { StoredShard } from '../building/planned-shard.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { BY_NUMBER } from '../vector-files/open-vector-files.ts';
import { cutSegments, type VectorFileSet } from '../vector-files/vector-file-set.ts';
import {
  bestSettings,
  describeSettings,
  type EmbeddedPassage,
  type EmbeddingSettings,
  type FoundSettings,
  renderTexts,
  type Similarities,
  settingsOptions,
  similarities,
  summary,
} from './embedding-settings.ts';
import type { ModelCheck, PrecomputedVectors } from './precomputed-vectors.ts';
import { checkFinite } from './read-segments.ts';

interface PassageRows {
  readonly path: string;
  readonly firstRow: number;
}

/** Lowest cosine of two vectors of the same text and model. float16 and other kernels stay above it. */
const SAME = 0.999;
/** Lowest cosine for an int8 encoder and vectors of a float encoder, if no other settings fit better. */
const SAME_INT8 = 0.97;
/** Smallest improvement of a cosine that counts as a better fit. */
const BETTER = 0.005;
/** Share of the rows that must match. A few passages of a corpus may have been corrected later. */
const SAME_SHARE = 0.95;
/** Row offsets to try: corpus or vectors may have one line more, such as a header. */
const SHIFTS = [-1, 1];

type Sample = EmbeddedPassage & { readonly row: number };
type Shift = { readonly by: number; readonly median: number };

/**
 * Checks that vectors belong to the stored passages and to the model: compares ids, if the files have them, and embeds some
 * passages again.
 *
 * @throws TrawlError VECTORS_MISMATCH, VECTORS_OF_ANOTHER_MODEL, NON_FINITE_VECTOR.
 */
export async function checkVectors(
  vectors: PrecomputedVectors,
  shards: readonly StoredShard[],
  { encoder, passageTemplate, onNote, signal }: Build,
): Promise<void> {
  const { set, check } = vectors;
  const files = shards.map(({ folder, firstRow }) => ({ path: join(folder, PASSAGES_FILE), firstRow }));
  if (set.ids !== undefined) checkIds(set.ids, files);
  if (check === undefined || check.rows === 0 || encoder === undefined) return;
  const { median, lowest, rows } = await checkModel(check, set, files, { encoder, template: passageTemplate, signal });
  onNote(
    `${rows} passages embedded again with ${encoder.identity.name}: the median similarity to their vectors is ` +
      `${median.toFixed(5)}, the lowest ${lowest.toFixed(5)}.`,
  );
}

/**
 * Compares the ids of a vector file with the passages' ids, row by row. A passage without an id matches any id. DPR puts the name of
 * the source before each id (`wiki:1`).
 *
 * @throws TrawlError VECTORS_MISMATCH with the first row that differs.
 */
function checkIds(ids: readonly string[], files: readonly PassageRows[]): void {
  let row = 0;
  for (const { path } of files) {
    const file = new PassageFile(path);
    try {
      for (const id of file.ids()) {
        if (id !== null && String(id) !== ids[row] && !ids[row]?.endsWith(`:${id}`)) {
          throw new TrawlError(
            'VECTORS_MISMATCH',
            `Row ${row}: the vector file has id ${JSON.stringify(ids[row] ?? null)}, the corpus ${JSON.stringify(String(id))}. ` +
              'Use the corpus that the vectors were made from, in the same order.',
            { details: { row } },
          );
        }
        row++;
      }
    } finally {
      file.close();
    }
  }
}

/**
 * Embeds random rows again and compares them with their vectors, to check model, prefix, pooling and template.
 *
 * @param files passage files in row order, with one passage per vector.
 * @throws TrawlError VECTORS_OF_ANOTHER_MODEL with the similarities and the settings that fit best.
 */
async function checkModel(
  check: ModelCheck,
  set: VectorFileSet,
  files: readonly PassageRows[],
  { encoder, template, signal }: { encoder: TextEncoder; template: string; signal: AbortSignal | undefined },
): Promise<Similarities & { readonly rows: number }> {
  const samples = sampleRows(check.rows, set, files);
  const { identity } = encoder;
  const own: EmbeddingSettings = {
    pooling: identity.pooling,
    prefix: identity.prefixes.passage,
    template,
    limit: identity.maxTokens.passage,
  };
  const texts = renderTexts(samples, template, '')!;
  const { vectors, outcomes } = await encoder.encode(texts, { inputType: 'passage', signal });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  const found = similarities(vectors, samples);
  if (shareFrom(SAME, found) >= SAME_SHARE) return { ...found, rows: samples.length };
  const shift = bestShift(set, vectors, samples, found.median);
  const best: FoundSettings =
    shift !== undefined && shift.median >= SAME
      ? { settings: own, median: found.median }
      : await bestSettings(check.reopen, samples, own, { same: SAME, signal });
  const isNearest = best.median < found.median + BETTER && (shift?.median ?? 0) < SAME;
  if (identity.precision === 'int8' && isNearest && shareFrom(SAME_INT8, found) >= SAME_SHARE) {
    return { ...found, rows: samples.length };
  }
  const details = { median: found.median, lowest: found.lowest };
  throw new TrawlError(
    'VECTORS_OF_ANOTHER_MODEL',
    `${samples.length} passages embedded again with ${identity.name} (${describeSettings(own)}): the median similarity to ` +
      `their vectors is ${found.median.toFixed(4)}, the lowest ${found.lowest.toFixed(4)}; the same model gives 0.9999. ` +
      verdict(own, best, shift) +
      orderHint(set),
    { details: { ...details, rows: samples.length, best: best.settings, bestMedian: best.median } },
  );
}

function shareFrom(lowest: number, { values }: Similarities): number {
  return values.filter((value) => value >= lowest).length / values.length;
}

function verdict(own: EmbeddingSettings, best: FoundSettings, shift: Shift | undefined): string {
  if (shift !== undefined && shift.median >= SAME) {
    return (
      `They match the vectors of the ${shift.by > 0 ? 'next' : 'previous'} row (median ${shift.median.toFixed(4)}): corpus ` +
      'and vectors are shifted by one row. Name the corpus that the vectors were made from.'
    );
  }
  const changed = describeSettings(best.settings, own);
  if (changed === '') {
    return 'No common prefix, pooling, template or token limit fits better: the vectors come from another model or corpus.';
  }
  if (best.median < SAME) {
    return `Of the common settings, ${changed} fits best, with ${best.median.toFixed(4)}: the vectors come from another model or corpus.`;
  }
  return `The vectors were made with ${changed} (similarity ${best.median.toFixed(4)}). Add ${settingsOptions(best.settings, own)}.`;
}

/** A shell lists emb_10 before emb_2. */
function orderHint({ files }: VectorFileSet): string {
  const names = files.map(({ path }) => basename(path));
  const next = names.findIndex((name, i) => i > 0 && BY_NUMBER.compare(names[i - 1]!, name) > 0);
  if (next < 0) return '';
  return (
    ` The files are not in the order of their numbers: ${names[next - 1]} comes before ${names[next]}. If their rows are, name the folder, ` +
    'or put the pattern in quotes.'
  );
}

/** The row offset at which the vectors fit better than at the rows themselves, if there is one. */
function bestShift(
  set: VectorFileSet,
  vectors: Float32Array,
  samples: readonly Sample[],
  median: number,
): Shift | undefined {
  const reader = new SegmentReader(set.segments, set.dimension);
  try {
    let best: Shift | undefined;
    for (const by of SHIFTS) {
      const inside = samples.flatMap(({ row }, i) =>
        row + by >= 0 && row + by < set.rows ? [{ row: row + by, i }] : [],
      );
      const values = inside.map(({ row, i }) => {
        const vector = vectors.subarray(i * set.dimension, (i + 1) * set.dimension);
        return similarities(vector, [{ vector: readVector(reader, row) }]).median;
      });
      const found = summary(values).median;
      if (found > (best?.median ?? median)) best = { by, median: found };
    }
    return best;
  } finally {
    reader.close();
  }
}

/** Pseudo-random rows, the same in every run. */
function sampleRows(count: number, set: VectorFileSet, files: readonly PassageRows[]): Sample[] {
  const reader = new SegmentReader(set.segments, set.dimension);
  try {
    return randomRows(count, set.rows).map((row) => {
      const shard = files.findLast(({ firstRow }) => row >= firstRow)!;
      const file = new PassageFile(shard.path);
      try {
        const vector = readVector(reader, row);
        const segments = cutSegments(set, row, 1);
        checkFinite({ values: vector, first: 0, segments, dimension: set.dimension }, row);
        return { row, document: storedRow(file.document(row - shard.firstRow)!), vector };
      } finally {
        file.close();
      }
    });
  } finally {
    reader.close();
  }
}

/** `count` different numbers below `rows`, or all of them. */
function randomRows(count: number, rows: number): number[] {
  if (rows <= count) return Array.from({ length: rows }, (_, row) => row);
  const chosen = new Set<number>();
  for (let state = 0x9e3779b9; chosen.size < count; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    chosen.add(Math.floor((state / 2 ** 32) * rows));
  }
  return [...chosen];
}

function readVector(reader: SegmentReader, row: number): Float32Array {
  const vector = new Float32Array(reader.dimension);
  reader.read(row, 1, vector);
  return vector;
}
