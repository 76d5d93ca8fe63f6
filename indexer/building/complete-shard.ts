import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { generationOf, type VectorSpace } from '../../src/index/manifest/index-manifest.ts';
import { type CorpusRecord, manifestVersion } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { makeColumns } from '../columns/make-columns.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { makeLexical } from '../lexical/make-lexical.ts';
import { SHARD_RECORDS } from './build-lock.ts';
import type { WrittenShardVectors } from './shard-vectors.ts';

/** A shard whose passages and vectors are on the disk. */
interface WrittenRows {
  readonly rows: number;
  /** Undefined for a shard without vectors, as is `vectors`. */
  readonly space: VectorSpace | undefined;
  readonly vectors: WrittenShardVectors | undefined;
  readonly passagesSha256: string;
  readonly corpus: Omit<CorpusRecord, 'duplicateIds'>;
  readonly input?: ShardManifest['input'];
}

/** What `completeShard` makes from the passages of a shard, and how. */
export interface MadeOfPassages {
  readonly bm25?: Bm25Settings;
  readonly columns: readonly Column[];
  readonly kernel?: Kernel;
  readonly onRows?: (rows: number) => void;
  readonly signal?: AbortSignal;
}

const NO_SPACE = { model: null, metric: null, dimension: 0 } as const;
const NO_VECTORS: WrittenShardVectors = { vectors: [], codes: null, files: [], sha256: '' };

/** Completes a shard: makes its inverted indexes and columns, and writes its manifest. The shard is immutable from then on. */
export async function completeShard(
  folder: string,
  { rows, space, vectors: written = NO_VECTORS, passagesSha256, corpus, input }: WrittenRows,
  { bm25, columns, kernel, onRows, signal }: MadeOfPassages,
): Promise<ShardManifest> {
  const passages = join(folder, PASSAGES_FILE);
  const lexical = bm25 && (await makeLexical(folder, passages, bm25, kernel, { onRows, signal }));
  throwIfCancelled(signal);
  const made = await makeColumns(folder, passages, columns, { signal });
  const { files, skippedLines, truncatedPassages, passageTemplate } = corpus;
  const duplicates = duplicateIds([passages], { exampleCount: 0, signal }).count;
  const { model, metric, dimension } = space ?? NO_SPACE;
  const manifest: ShardManifest = {
    format: 'trawl-shard',
    version: manifestVersion(model),
    generation: generationOf([rows, dimension, metric, model, passageTemplate, passagesSha256, written.sha256]),
    rows,
    dimension,
    metric,
    model,
    corpus: { files, skippedLines, duplicateIds: duplicates, truncatedPassages, passageTemplate },
    vectors: written.vectors,
    codes: written.codes,
    prefilter: written.prefilter,
    bm25: lexical?.bm25,
    columns: made.columns.length === 0 ? undefined : made.columns,
    passages: { path: PASSAGES_FILE, sha256: passagesSha256 },
    files: [...written.files, ...(lexical?.files ?? []), ...made.files],
    input,
  };
  await syncFolder(folder);
  await writeShardManifest(folder, manifest);
  // Only an unfinished shard needs them. A job still holds the lock.
  for (const name of SHARD_RECORDS) await rm(join(folder, name), { force: true });
  return manifest;
}
