import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { type OpenedShard, within } from '../../src/retrieval/index-directory.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

/** Passages handed to the encoder at once. */
const BATCH = 32;
/** Rows that are listed one by one. */
const MAX_LISTED = 5;
/**
 * How far a vector may be from the stored one, as a part of its length. Other machines, batches and the float16 of GPUs move
 * a vector by some thousandths; another passage of the same corpus, prefix or pooling by several tenths.
 */
const MAX_DISTANCE = { float: 0.05, int8: 0.3 } as const;

export interface SampleReport {
  readonly problems: readonly VerifyProblem[];
  readonly passages: number;
  /** Vectors with the stored bits. */
  readonly equal: number;
  /** The largest distance to a stored vector, as a part of the length of the one made now; null without passages. */
  readonly largestDistance: number | null;
}

/**
 * Embeds passages of the index again and compares them with the stored vectors: rows evenly spread over the shards given,
 * the same ones each time.
 *
 * @throws TrawlError ENCODING_FAILED, CANCELLED.
 */
export async function verifySample(
  shards: readonly OpenedShard[],
  { model, corpus }: IndexManifest,
  encoder: TextEncoder,
  {
    sample,
    onPassages,
    signal,
  }: { sample: number; onPassages: (passages: number) => void; signal?: AbortSignal | undefined },
): Promise<SampleReport> {
  const template = parseTemplate(corpus.passageTemplate);
  const limit = model.precision === 'int8' ? MAX_DISTANCE.int8 : MAX_DISTANCE.float;
  const problems: VerifyProblem[] = [];
  const distances: number[] = [];
  let far = 0;
  for (const { shard, rows } of spread(shards, sample)) {
    const path = within(shard.folder, shard.manifest.passages.path);
    try {
      const { documents, stored } = readRows(shard, rows, path);
      for (let start = 0; start < rows.length; start += BATCH) {
        throwIfCancelled(signal);
        const texts = documents.slice(start, start + BATCH).map((document) => template(parsed(document)));
        const { vectors, outcomes } = await encoder.encode(texts, {
          kind: 'passage',
          ...(signal === undefined ? {} : { signal }),
        });
        for (const [i, outcome] of outcomes.entries()) {
          if (!outcome.ok) throw outcome.error;
          const row = rows[start + i]!;
          const distance = relativeDistance(vectors, i, stored[start + i]!);
          distances.push(distance);
          if (distance <= limit || ++far > MAX_LISTED) continue;
          problems.push(
            problem(
              path,
              `the passage of row ${row} embedded again is ${distance.toFixed(3)} of its length away from the stored vector; ` +
                `at most ${limit} is expected of the same passage and model`,
              'Passages and vectors do not belong together, or the vectors are of another model, prefix or pooling: build the index again.',
            ),
          );
        }
        onPassages(texts.length);
      }
    } catch (error) {
      if (signal?.aborted === true) throw error;
      problems.push(problemOf(error, path));
    }
  }
  if (far > MAX_LISTED) {
    const { file } = problems[0]!;
    problems.push(
      problem(file, `${far} of ${distances.length} passages embedded again are too far away`, 'The first are named.'),
    );
  }
  return {
    problems,
    passages: distances.length,
    equal: distances.filter((distance) => distance === 0).length,
    largestDistance: distances.length === 0 ? null : distances.reduce((a, b) => Math.max(a, b)),
  };
}

/** Rows within their shards: the middles of as many equal parts of all rows. */
function spread(shards: readonly OpenedShard[], sample: number): { shard: OpenedShard; rows: number[] }[] {
  const total = shards.reduce((sum, { manifest }) => sum + manifest.rows, 0);
  const count = Math.min(sample, total);
  const chosen = Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * total) / count));
  let before = 0;
  return shards.map((shard) => {
    const first = before;
    before += shard.manifest.rows;
    return { shard, rows: chosen.filter((row) => row >= first && row < before).map((row) => row - first) };
  });
}

function readRows(
  { folder, manifest }: OpenedShard,
  rows: readonly number[],
  path: string,
): { documents: string[]; stored: Float32Array[] } {
  const segments = manifest.vectors.map((segment) => ({ ...segment, path: within(folder, segment.path) }));
  const reader = new SegmentReader(segments, manifest.dimension);
  try {
    const stored = rows.map((row) => {
      const vector = new Float32Array(manifest.dimension);
      reader.read(row, 1, vector);
      return vector;
    });
    const file = new PassageFile(path);
    try {
      return { documents: rows.map((row) => file.document(row) ?? ''), stored };
    } finally {
      file.close();
    }
  } finally {
    reader.close();
  }
}

/** A document that does not parse is a finding of the content hash; here it is an empty passage, far from its vector. */
function parsed(document: string): PassageRow {
  const result = parseJson(document);
  const isRow = result.ok && typeof result.value === 'object' && result.value !== null;
  return isRow ? (result.value as PassageRow) : { contents: '' };
}

function relativeDistance(vectors: Float32Array, text: number, stored: Float32Array): number {
  let difference = 0;
  let length = 0;
  for (const [column, value] of stored.entries()) {
    const made = vectors[text * stored.length + column]!;
    difference += (made - value) ** 2;
    length += made ** 2;
  }
  if (difference === 0) return 0;
  const distance = Math.sqrt(difference) / Math.sqrt(length);
  return Number.isNaN(distance) ? Number.POSITIVE_INFINITY : distance;
}
