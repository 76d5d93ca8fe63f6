import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { cutSegments, type VectorFileSet } from '../vector-files/vector-file-set.ts';
import { checkFinite } from './check-finite.ts';
import {
  bestSettings,
  describeSettings,
  type EmbeddedPassage,
  type EmbeddingSettings,
  type FoundSettings,
  type ReopenEncoder,
  settingsOptions,
  textsOf,
} from './embedding-settings.ts';
import { type Similarities, similarities, summary } from './similarities.ts';

export interface ModelCheck {
  /** Passages to embed again. */
  readonly rows: number;
  /** Opens the model with other settings, to find those that the vectors were made with. */
  readonly reopen: ReopenEncoder;
}

/** A passage file and the number of its first row in the index. */
export interface PassageRows {
  readonly path: string;
  readonly firstRow: number;
}

export interface CheckedModel extends Similarities {
  readonly rows: number;
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

interface Sample extends EmbeddedPassage {
  readonly row: number;
}

interface Shift {
  readonly by: number;
  readonly median: number;
}

/**
 * Embeds random rows again and compares them with their vectors, to check model, prefix, pooling and template.
 *
 * @param files passage files in row order, with one passage per vector.
 * @throws TrawlError VECTORS_OF_ANOTHER_MODEL with the similarities and the settings that fit best.
 */
export async function checkModel(
  check: ModelCheck,
  set: VectorFileSet,
  files: readonly PassageRows[],
  { encoder, template, signal }: { encoder: TextEncoder; template: string; signal: AbortSignal | undefined },
): Promise<CheckedModel> {
  const samples = sampleRows(check.rows, set, files);
  const { identity } = encoder;
  const own: EmbeddingSettings = {
    pooling: identity.pooling,
    prefix: identity.prefixes.passage,
    template,
    limit: identity.maxTokens.passage,
  };
  const texts = textsOf(samples, template, '')!;
  const { vectors, outcomes } = await encoder.encode(texts, {
    inputType: 'passage',
    signal,
  });
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
  throw new TrawlError(
    'VECTORS_OF_ANOTHER_MODEL',
    `${samples.length} passages embedded again with ${identity.name} (${describeSettings(own)}): the median similarity to ` +
      `their vectors is ${found.median.toFixed(4)}, the lowest ${found.lowest.toFixed(4)}; the same model gives 0.9999. ` +
      verdict(own, best, shift),
    {
      details: {
        median: found.median,
        lowest: found.lowest,
        rows: samples.length,
        best: best.settings,
        bestMedian: best.median,
      },
    },
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

/** The row offset whose vectors are more similar than those of the rows themselves, if there is one. */
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
        return similarities(vector, [{ vector: rowOf(reader, row) }]).median;
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
      const file = new PassageFile(shard.path, { mapped: false });
      try {
        const parsed = parseJson(file.document(row - shard.firstRow)!);
        if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
        const vector = rowOf(reader, row);
        const segments = cutSegments(set, row, 1);
        checkFinite({ values: vector, first: 0, segments, dimension: set.dimension }, row);
        return { row, document: parsed.value as PassageRow, vector };
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

function rowOf(reader: SegmentReader, row: number): Float32Array {
  const vector = new Float32Array(reader.dimension);
  reader.read(row, 1, vector);
  return vector;
}
