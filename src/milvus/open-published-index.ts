import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Column } from '../filter/column.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import { vectorSpace } from '../manifest/vector-space.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import { RowBitmap } from '../row-bitmap.ts';
import type { VectorIndex } from '../vector-index/vector-index.ts';
import { collectionProblems, type FoundCollection, findCollection } from './check-collection.ts';
import { readFile } from './collection-files.ts';
import { parseMilvusAddress } from './milvus-address.ts';
import { MilvusCandidates } from './milvus-candidates.ts';
import { MilvusClient } from './milvus-client.ts';
import { MilvusIndex } from './milvus-index.ts';
import { MilvusPassageStore } from './milvus-passage-store.ts';
import { PushedFilters } from './pushed-filters.ts';

/** The only index of Milvus that scores every row. */
export const EXACT_INDEX = 'FLAT';

/** The files of a column, of which the paths are in a temporary folder. */
interface ColumnFiles extends Column {
  readonly paths: readonly string[];
}

/** An index in Milvus, opened. Its parts share a connection, which is closed after the last of them and `close`. */
export interface PublishedIndex {
  readonly manifest: IndexManifest;
  readonly collection: string;
  /** Milvus's name of the index over the vectors. */
  readonly indexType: string;
  /** Undefined if no row is deleted. */
  readonly liveRows: RowBitmap | undefined;
  readonly columns: readonly ColumnFiles[];
  /** Filters that Milvus can evaluate. */
  readonly pushed: PushedFilters;
  openVectors(): VectorIndex;
  openPassages(): PassageStore;
  /** The vectors of distinct rows, row-major in their order. */
  vectorsOf(rows: readonly number[]): Promise<Float32Array>;
  close(): Promise<void>;
}

/**
 * Opens an index that `trawl publish` loaded into Milvus: reads its record, checks that all its rows are there and searched completely, and
 * fetches the columns for filters and the deleted rows, which are evaluated here.
 *
 * @throws TrawlError CONFIG_INVALID, STORE_…, or INDEX_…; nothing stays open then.
 */
export async function openPublishedIndex(text: string): Promise<PublishedIndex> {
  const address = parseMilvusAddress(text);
  const client = await MilvusClient.connect(address);
  try {
    const found = await findCollection(client, address);
    const [problem] = await collectionProblems(client, found);
    if (problem !== undefined) throw problem;
    return await openCollection(client, found, () => client.close());
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Opens a collection whose state was checked. `closeClient` is called after the last of its parts was closed. */
export async function openCollection(
  client: MilvusClient,
  { name, publication }: FoundCollection,
  closeClient: () => Promise<void>,
): Promise<PublishedIndex> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-milvus-'));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const { columns, liveRows } = await fetchFiles(client, { name, publication }, folder);
    const end = async (): Promise<void> => {
      await closeClient();
      await removeFolder();
    };
    return partsOf(client, { name, publication }, { columns, liveRows, release: sharedEnd(end) });
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** Fetches the columns into a folder, and the deleted rows. */
async function fetchFiles(
  client: MilvusClient,
  { name, publication }: FoundCollection,
  folder: string,
): Promise<{ columns: ColumnFiles[]; liveRows: RowBitmap | undefined }> {
  const { deletedRows, manifest } = publication;
  const liveRows =
    deletedRows === null
      ? undefined
      : new RowBitmap(manifest.rows, new Uint8Array(await readFile(client, name, deletedRows))).complement();
  const columns: ColumnFiles[] = [];
  for (const [c, column] of publication.columns.entries()) {
    const paths: string[] = [];
    for (const [shard, file] of column.files.entries()) {
      const path = join(folder, `column-${c}-${shard}`);
      await writeFile(path, await readFile(client, name, file));
      paths.push(path);
    }
    columns.push({ name: column.name, type: column.type, paths });
  }
  return { columns, liveRows };
}

function partsOf(
  client: MilvusClient,
  { name, publication }: FoundCollection,
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
  const { dimension, metric } = vectorSpace(manifest)!;
  const pushed = new PushedFilters(publication.keyColumns ?? []);
  const source = new MilvusCandidates(client, { collection: name, dimension, metric, indexType });
  return {
    manifest,
    collection: name,
    indexType,
    liveRows,
    columns,
    pushed,
    openVectors: () => {
      const scoresEveryRow = indexType === EXACT_INDEX;
      const facts = { dimension, rows: manifest.rows, metric, liveRows, largestNorm, scoresEveryRow, pushed };
      return new MilvusIndex(source, facts, release());
    },
    openPassages: () =>
      new MilvusPassageStore(
        client,
        {
          collection: name,
          rows: manifest.rows,
          pieces,
          lookups,
          isDeleted: (row) => liveRows?.has(row) === false,
        },
        release(),
      ),
    vectorsOf: (rows) => source.vectors(rows),
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
