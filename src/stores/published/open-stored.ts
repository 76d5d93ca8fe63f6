import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Column } from '../../engine/filter/column.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import { type IndexManifest, vectorSpace } from '../../index/manifest/index-manifest.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import { CandidateIndex } from './candidate-index.ts';
import type { CandidateSource, StoreFilters, StoreScores } from './candidate-source.ts';
import type { Publication } from './publication.ts';
import { type PartStore, readFile } from './stored-files.ts';
import { type PassageReader, storedPassages } from './stored-passages.ts';

interface ColumnFiles extends Column {
  readonly paths: readonly string[];
}

/** A published index, opened. Its parts share a connection, which is closed after the last of them and `close`. */
export interface PublishedIndex {
  readonly manifest: IndexManifest;
  /** The name of the collection in Milvus, or of the index in OpenSearch. */
  readonly collection: string;
  readonly scoresEveryRow: boolean;
  /** The store's name of the index over the vectors. */
  readonly indexType: string;
  readonly liveRows: RowBitmap | undefined;
  readonly columns: readonly ColumnFiles[];
  /** Filters that the store can evaluate; undefined: none. */
  readonly pushed: StoreFilters | undefined;
  openVectors(): VectorIndex;
  openPassages(): PassageStore;
  /** Undefined if the index was published without its words, or the store does not search them. */
  openWords(): LexicalFields | undefined;
  /** The vectors of distinct rows, row-major in their order. */
  vectorsOf(rows: readonly number[]): Promise<Float32Array>;
  close(): Promise<void>;
}

export interface StoreParts {
  readonly name: string;
  readonly publication: Publication;
  readonly files: PartStore;
  readonly source: CandidateSource;
  readonly scores: StoreScores;
  readonly scoresEveryRow: boolean;
  readonly pushed?: StoreFilters;
  readonly passages: PassageReader;
  /** Opens the search of words; `end` is called when it is closed. */
  readonly words?: (liveRows: RowBitmap | undefined, end: () => Promise<void>) => LexicalFields;
}

/** Opens a publication whose state was checked. `closeClient` is called after the last of its parts was closed. */
export async function openStored(parts: StoreParts, closeClient?: () => Promise<void>): Promise<PublishedIndex> {
  const { name, publication, files, source, scores, scoresEveryRow, pushed, passages, words } = parts;
  const { manifest, largestNorm, pieces, lookups, indexType, deletedRows } = publication;
  const { rows } = manifest;
  const { dimension, metric } = vectorSpace(manifest)!;
  const liveRows =
    deletedRows === null
      ? undefined
      : new RowBitmap(rows, new Uint8Array(await readFile(files, deletedRows))).complement();
  const folder = await mkdtemp(join(tmpdir(), 'trawl-published-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const columns = await fetchColumns(files, publication.columns, folder).catch(async (error: unknown) => {
    await removeFolder();
    throw error;
  });
  const release = sharedEnd(async () => {
    await closeClient?.();
    await removeFolder();
  });
  return {
    manifest,
    collection: name,
    indexType,
    scoresEveryRow,
    liveRows,
    columns,
    pushed,
    openVectors: () => {
      const facts = { dimension, rows, metric, liveRows, largestNorm, scores, scoresEveryRow, pushed };
      return new CandidateIndex(source, facts, release());
    },
    openPassages: () => storedPassages(passages, { rows, pieces, lookups, liveRows }, release()),
    openWords: () => words?.(liveRows, release()),
    vectorsOf: (wanted) => source.vectors(wanted),
    close: release(),
  };
}

async function fetchColumns(store: PartStore, stored: Publication['columns'], folder: string): Promise<ColumnFiles[]> {
  const columns: ColumnFiles[] = [];
  for (const [c, { name, type, files }] of stored.entries()) {
    const paths = files.map((_, shard) => join(folder, `column-${c}-${shard}`));
    for (const [shard, file] of files.entries()) await writeFile(paths[shard]!, await readFile(store, file));
    columns.push({ name, type, paths });
  }
  return columns;
}

/** Returns a function that hands out closers; `end` runs after the last of them was called. */
function sharedEnd(end: () => Promise<void>): () => () => Promise<void> {
  let open = 0;
  return () => {
    open++;
    let closed = false;
    return async () => {
      if (closed) return;
      closed = true;
      if (--open === 0) await end();
    };
  };
}
