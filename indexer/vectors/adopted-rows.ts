import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { sampleChecksum } from '../../src/engine/vectors/sample-checksum.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { Build } from '../building/build.ts';
import type { RowSource } from '../building/row-sources.ts';
import { derivedFiles } from '../building/shard-vectors.ts';
import { CODES_FILE } from '../index-files.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkFinite } from './check-finite.ts';
import { NormSample } from './norm-sample.ts';
import { checkVectorsUnchanged } from './precomputed-vectors.ts';
import { readSegments, type SegmentBlock } from './read-segments.ts';

/**
 * Uses the vectors of files in place. Reads them once, for checksums, codes and the check that all values are finite. A resumed
 * build repeats this pass.
 *
 * @throws TrawlError NON_FINITE_VECTOR with file, row and column; VECTORS_INVALID, DISK_FULL, CANCELLED.
 */
export const adoptedRows: RowSource = async (build, { folder, firstRow, rows }, report) => {
  const { clock, kernel, onNote, signal, stage } = build;
  const { model, metric, dimension } = build.space!;
  const vectors = build.vectors!;
  const segments = cutSegments(vectors.set, firstRow, rows);
  report(stage, 0);
  const norms = new NormSample(dimension);
  const checksums = await readOnce(build, folder, { segments, firstRow }, ({ values, first, count }) => {
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
  const sha256 = contentHash(segments, checksums);
  return { vectors: { ...derived, vectors: adopted, sha256 }, tokens: 0, truncatedPassages: 0, resumedRows: 0 };
};

/** Identifies the rows by their content, independent of the paths. */
function contentHash(segments: readonly VectorSegment[], checksums: readonly string[]): string {
  const facts = segments.map(({ bytes, dtype }, i) => [bytes, dtype, checksums[i]]);
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

/** Resolves links first, because the index may later be opened by another path. */
function relativeTo(folder: string, path: string): string {
  return relative(realpathSync(folder), join(realpathSync(dirname(path)), basename(path)));
}

/** The vectors of a shard in their files. */
interface ShardSegments {
  readonly segments: readonly VectorSegment[];
  /** Number of the shard's first row in the index. */
  readonly firstRow: number;
}

/** Makes the codes. Returns the SHA-256 of each segment. */
async function readOnce(
  { space, kernel, signal }: Build,
  folder: string,
  { segments, firstRow }: ShardSegments,
  onBlock: (block: SegmentBlock) => void,
): Promise<string[]> {
  const { dimension, metric } = space!;
  const hashes = segments.map(() => createHash('sha256'));
  const path = join(folder, CODES_FILE);
  const codes = kernel === undefined ? undefined : new CodesWriter(path, { metric, dimension }, kernel);
  try {
    for await (const block of readSegments(segments, dimension, { signal })) {
      const { first, values, parts } = block;
      // The engine copies the rows before `append` returns; its threads compute the codes while this thread hashes.
      const coding = codes?.append(values);
      coding?.catch(() => undefined);
      for (const { segment, bytes } of parts) hashes[segment]!.update(bytes);
      if (codes === undefined) checkFinite({ values, first, segments, dimension }, firstRow);
      try {
        await coding;
      } catch (error) {
        if (error instanceof TrawlError && error.code === 'NON_FINITE_VECTOR') {
          checkFinite({ values, first, segments, dimension }, firstRow);
        }
        throw error;
      }
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
