import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import type { Metric } from '../../src/engine/metric.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { sampleChecksum } from '../../src/engine/vectors/sample-checksum.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { Build } from '../building/build.ts';
import type { StoredShard } from '../building/planned-shard.ts';
import { NONE_REFUSED, type RowSource } from '../building/row-sources.ts';
import { derivedFiles } from '../building/shard-vectors.ts';
import { CODES_FILE } from '../index-files.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkVectorsUnchanged } from './precomputed-vectors.ts';
import { checkFinite, readSegments, type SegmentBlock } from './read-segments.ts';

/** Rows measured per block. */
const SAMPLED_ROWS = 32;
/** Encoders in float16 normalise to within 5e-4. */
const NORM_TOLERANCE = 0.01;

/**
 * Uses the vectors of files in place. Reads them once, for checksums, codes and the check that all values are finite. A resumed
 * build repeats this pass.
 *
 * @throws TrawlError NON_FINITE_VECTOR with file, row and column; VECTORS_INVALID, DISK_FULL, CANCELLED.
 */
export const adoptedRows: RowSource = async (build, shard, report) => {
  const { folder, firstRow, rows } = shard;
  const { clock, kernel, onNote, signal, stage } = build;
  const { model, metric, dimension } = build.space!;
  const vectors = build.vectors!;
  const segments = cutSegments(vectors.set, firstRow, rows);
  report(stage, 0);
  const norms = sampleNorms(dimension);
  const checksums = await readOnce(build, shard, segments, ({ values, first, count }) => {
    norms.add(values);
    report(stage, first + count);
  });
  const warning = norms.warning(model, metric);
  if (warning !== undefined) onNote(`Rows ${firstRow} to ${firstRow + rows}: ${warning}`);
  clock.start('finish');
  const derived = await derivedFiles(folder, segments, { rows, dimension }, { kernel, signal });
  checkVectorsUnchanged(vectors);
  const sizes = new Map(vectors.set.files.map(({ path, bytes }) => [path, bytes]));
  const adopted = segments.map((segment, i) => ({
    ...segment,
    path: vectors.relativePaths === true ? relativeTo(folder, segment.path) : segment.path,
    adopted: {
      fileBytes: sizes.get(segment.path)!,
      sha256: checksums[i]!,
      sample: sampleChecksum(segment.path, segment),
    },
  }));
  // Identifies the rows by their content, independent of the paths.
  const facts = segments.map(({ bytes, dtype }, i) => [bytes, dtype, checksums[i]]);
  const sha256 = createHash('sha256').update(JSON.stringify(facts)).digest('hex');
  return {
    vectors: { ...derived, vectors: adopted, sha256 },
    tokens: 0,
    truncatedPassages: 0,
    resumedRows: 0,
    refused: NONE_REFUSED,
  };
};

/** Resolves links first, because the index may later be opened by another path. */
function relativeTo(folder: string, path: string): string {
  return relative(realpathSync(folder), join(realpathSync(dirname(path)), basename(path)));
}

/** Makes the codes of a shard. Returns the SHA-256 of each segment. */
async function readOnce(
  { space, kernel, signal }: Build,
  { folder, firstRow }: StoredShard,
  segments: readonly VectorSegment[],
  onBlock: (block: SegmentBlock) => void,
): Promise<string[]> {
  const { dimension, metric } = space!;
  const hashes = segments.map(() => createHash('sha256'));
  const path = join(folder, CODES_FILE);
  const codes = kernel === undefined ? undefined : new CodesWriter(path, { metric, dimension }, kernel);
  try {
    for await (const block of readSegments(segments, dimension, { files: 'build', signal })) {
      const { first, values, parts } = block;
      // The engine copies the rows before `append` returns; its threads compute the codes while this thread hashes.
      const coding = codes?.append(values);
      coding?.catch(() => undefined);
      for (const { segment, bytes } of parts) hashes[segment]!.update(bytes);
      if (codes === undefined) checkFinite({ values, first, segments, dimension }, firstRow);
      await coding?.catch((error: unknown) => {
        if (error instanceof TrawlError && error.code === 'NON_FINITE_VECTOR') {
          checkFinite({ values, first, segments, dimension }, firstRow);
        }
        throw error;
      });
      onBlock(block);
    }
    await codes?.finish();
  } catch (error) {
    codes?.abandon();
    await rm(path, { force: true });
    throw error;
  }
  return hashes.map((hash) => hash.digest('hex'));
}

/** Measures the lengths of a few rows per block. Vectors of a model that normalises have length 1. */
function sampleNorms(dimension: number) {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  return {
    /** @param values rows, row-major. */
    add(values: Float32Array): void {
      const rows = values.length / dimension;
      for (let i = 0; i < Math.min(rows, SAMPLED_ROWS); i++) {
        const begin = rows <= SAMPLED_ROWS ? i : Math.floor((i * rows) / SAMPLED_ROWS);
        let sum = 0;
        for (let j = begin * dimension; j < (begin + 1) * dimension; j++) sum += values[j]! * values[j]!;
        const norm = Math.sqrt(sum);
        [least, most] = [Math.min(least, norm), Math.max(most, norm)];
      }
    },
    /** A warning if the lengths do not match the model. */
    warning({ name, normalize }: ModelIdentity, metric: Metric): string | undefined {
      if (!normalize || metric === 'l2' || most === 0) return undefined;
      if (least >= 1 - NORM_TOLERANCE && most <= 1 + NORM_TOLERANCE) return undefined;
      return (
        `Vectors of ${name} have length 1, but a sample of these has lengths from ${least.toFixed(3)} to ` +
        `${most.toFixed(3)}. They may come from another model, or are not normalised.` +
        (metric === 'inner-product' ? ' Scores will be inner products; --metric cosine divides by the lengths.' : '')
      );
    },
  };
}
