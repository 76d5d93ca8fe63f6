import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Column } from '../../engine/filter/column.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { vectorSpace } from '../../index/manifest/vector-space.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import { CandidateIndex } from './candidate-index.ts';
import type { CandidateSource, StoreFilters, StoreScores } from './candidate-source.ts';
import type { Publication } from './publication.ts';
import { type PartStore, readFile } from './stored-files.ts';
import { type PassageReader, StoredPassages } from './stored-passages.ts';

/** The files of a column, of which the paths are in a temporary folder. */
interface ColumnFiles extends Column {
  readonly paths: readonly string[];
}

/** A published index, opened. Its parts share a connection, which is closed after the last of them and `close`. */
export interface PublishedIndex {
  readonly manifest: IndexManifest;
  /** The name of the collection in Milvus, or of the index in OpenSearch. */
  readonly collection: string;
  /** Whether the store scores every row. */
  readonly scoresEveryRow: boolean;
  /** The store's name of the index over the vectors. */
  readonly indexType: string;
  /** Undefined if no row is deleted. */
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

/** The parts of a store that an index is made of. */
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
export async function openStored(parts: StoreParts, closeClient: () => Promise<void>): Promise<PublishedIndex> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-published-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const { columns, liveRows } = await fetchFiles(parts, folder);
    const release = sharedEnd(async () => {
      await closeClient();
      await removeFolder();
    });
    return partsOf(parts, { columns, liveRows, release });
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** Fetches the columns into a folder, and the deleted rows. */
async function fetchFiles(
  { files: store, publication }: StoreParts,
  folder: string,
): Promise<{ columns: ColumnFiles[]; liveRows: RowBitmap | undefined }> {
  const { deletedRows, manifest } = publication;
  const liveRows =
    deletedRows === null
      ? undefined
      : new RowBitmap(manifest.rows, new Uint8Array(await readFile(store, deletedRows))).complement();
  const columns: ColumnFiles[] = [];
  for (const [c, column] of publication.columns.entries()) {
    const paths: string[] = [];
    for (const [shard, file] of column.files.entries()) {
      const path = join(folder, `column-${c}-${shard}`);
      await writeFile(path, await readFile(store, file));
      paths.push(path);
    }
    columns.push({ name: column.name, type: column.type, paths });
  }
  return { columns, liveRows };
}

function partsOf(
  { name, publication, source, scores, scoresEveryRow, pushed, passages, words }: StoreParts,
  {
    columns,
    liveRows,
    release,
  }: {
    columns: readonly ColumnFiles[];
    liveRows: RowBitmap | undefined;
    release: () => () => Promise<void>;
  },
): PublishedIndex {
  const { manifest, largestNorm, pieces, lookups, indexType } = publication;
  const { rows } = manifest;
  const { dimension, metric } = vectorSpace(manifest)!;
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
    openPassages: () =>
      new StoredPassages(
        passages,
        { rows, pieces, lookups, isDeleted: (row) => liveRows?.has(row) === false },
        release(),
      ),
    openWords: () => words?.(liveRows, release()),
    vectorsOf: (wanted) => source.vectors(wanted),
    close: release(),
  };
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
