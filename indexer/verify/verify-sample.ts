import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { shardSegments } from '../vectors/read-segments.ts';
import { spreadRows } from './spread-rows.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';

const BATCH = 32;
/** Limit of the rows that are reported one by one. */
const MAX_LISTED = 5;
/**
 * Largest accepted distance to the stored vector, as a fraction of the vector's length. Another machine, batch or float16 on a
 * GPU changes a vector by some thousandths; another passage, prefix or pooling by several tenths.
 */
const MAX_DISTANCE = { float: 0.05, int8: 0.3 } as const;

const BUILD_AGAIN =
  'Passages and vectors do not belong together, or the vectors come from another model, prefix or pooling: build the index again.';

export interface SampleOptions {
  readonly sample: number;
  /** Largest accepted distance, as a fraction of the vector's length. Default: 0.05, for int8 models 0.3. */
  readonly largestDistance?: number;
  readonly onPassages: () => void;
  readonly signal?: AbortSignal;
}

export interface SampleReport {
  readonly problems: readonly VerifyProblem[];
  readonly passages: number;
  /** Vectors equal to the stored ones, bit for bit. */
  readonly equal: number;
  /** Largest distance to a stored vector, as a fraction of the new one's length. Null without passages. */
  readonly largestDistance: number | null;
}

/**
 * Embeds passages of the index again and compares them with the stored vectors. The rows are spread evenly over the index and
 * are the same in every run.
 *
 * @throws TrawlError ENCODING_FAILED, CANCELLED.
 */
export async function verifySample(
  shards: readonly OpenedShard[],
  { model, corpus }: { readonly model: ModelIdentity; readonly corpus: CorpusRecord },
  encoder: Pick<TextEncoder, 'encode'>,
  { sample, largestDistance, onPassages, signal }: SampleOptions,
): Promise<SampleReport> {
  const template = parseTemplate(corpus.passageTemplate);
  const limit = largestDistance ?? MAX_DISTANCE[model.precision === 'int8' ? 'int8' : 'float'];
  const problems: VerifyProblem[] = [];
  const distances: number[] = [];
  let far = 0;
  for (const { shard, rows } of spreadRows(shards, sample)) {
    const path = within(shard.folder, shard.manifest.passages.path);
    try {
      for (let start = 0; start < rows.length; start += BATCH) {
        throwIfCancelled(signal);
        const some = rows.slice(start, start + BATCH);
        const { documents, stored } = readRows(shard, some, path);
        const texts = documents.map((document) => template(parsed(document)));
        const { vectors, outcomes } = await encoder.encode(texts, { inputType: 'passage', signal });
        for (const [i, outcome] of outcomes.entries()) {
          if (!outcome.ok) throw outcome.error;
          const row = some[i]!;
          const distance = relativeDistance(vectors, i, stored[i]!);
          distances.push(distance);
          if (distance <= limit || ++far > MAX_LISTED) continue;
          const found =
            `the passage of row ${row}, embedded again, has a relative distance of ${distance.toFixed(3)} to the stored ` +
            `vector; for the same passage and model it is at most ${limit}`;
          problems.push(problem(path, found, BUILD_AGAIN));
        }
        onPassages();
      }
    } catch (error) {
      if (signal?.aborted === true) throw error;
      problems.push(problemOf(error, path));
    }
  }
  if (far > MAX_LISTED) {
    const found = `${far} of ${distances.length} passages, embedded again, are too far from their vectors`;
    problems.push(problem(problems[0]!.file, found, 'The first of them are listed.'));
  }
  return {
    problems,
    passages: distances.length,
    equal: distances.filter((distance) => distance === 0).length,
    largestDistance: distances.length === 0 ? null : distances.reduce((a, b) => Math.max(a, b)),
  };
}

function readRows(
  { folder, manifest }: OpenedShard,
  rows: readonly number[],
  path: string,
): { documents: string[]; stored: Float32Array[] } {
  const reader = new SegmentReader(shardSegments({ folder, manifest }), manifest.dimension);
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

/** A document that does not parse becomes an empty passage. The content hash reports it as well. */
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
