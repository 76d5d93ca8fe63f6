import { throwIfCancelled } from '../../base/abort.ts';
import type { TrawlError } from '../../base/errors.ts';
import { DEFAULT_BM25 } from '../../engine/lexical/bm25.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import { parseMilvusAddress, shownAddress as shownMilvus } from '../milvus/milvus-address.ts';
import { rangeExpression } from '../milvus/milvus-candidates.ts';
import { MilvusClient } from '../milvus/milvus-client.ts';
import { collectionProblems, findCollection, openCollection } from '../milvus/open-published-index.ts';
import * as milvusRows from '../milvus/published-rows.ts';
import { findIndex, indexProblems, openFoundIndex } from '../opensearch/open-published-index.ts';
import { parseOpenSearchAddress, shownAddress as shownOpenSearch } from '../opensearch/opensearch-address.ts';
import { OpenSearchClient } from '../opensearch/opensearch-client.ts';
import { rowQuery } from '../opensearch/row-query.ts';
import { DOCUMENT_FIELD, documentOf, idOf, vectorOf } from '../opensearch/stored-rows.ts';
import type { FoundPublication } from '../published/find-publication.ts';
import type { PublishedIndex } from '../published/open-stored.ts';
import { storedRows } from '../published/publication.ts';
import {
  ContentSum,
  ID_FIELD,
  PIECE_BYTES,
  type PublishedRow,
  ROW_FIELD,
  upperNorm,
  VECTOR_FIELD,
} from '../published/published-row.ts';
import { firstWords, sampledRows } from './verify-publication.ts';

/** Rows, values of vectors, and bytes of documents that are read at a time. */
const ROWS_A_READ = 1_000;
const VALUES_A_READ = 2 ** 19;
const BYTES_A_READ = 2 ** 25;
/** After that many problems, no further rows are read. */
const MAX_PROBLEMS = 20;
const SAMPLE = 64;

interface StoreReport {
  /** The address without user and password. */
  readonly address: string;
  readonly rows: number;
  readonly problems: readonly string[];
}

interface VerifyOptions {
  /** Check the state of the collection and its files, but do not read the rows. */
  readonly quick: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (doneRows: number, rows: number) => void;
}

/**
 * Checks an index in Milvus: that the collection is loaded, indexed as published and complete, the checksums of the files, and, unless
 * `quick`, the checksum of all rows with vectors, ids and documents.
 */
export async function verifyCollection(place: string, options: VerifyOptions): Promise<StoreReport> {
  const address = parseMilvusAddress(place);
  const client = await MilvusClient.connect(address);
  const { signal } = options;
  return verifyStore(
    {
      address: shownMilvus(address),
      close: () => client.close(),
      find: () => findCollection(client, address),
      problems: (found) => collectionProblems(client, found),
      open: (found) => openCollection(client, found),
      read: async ({ name, publication: { manifest, pieces, keyColumns = [] } }, first, end) => {
        const fields = milvusRows.rowFields(manifest.dimension, { pieces, keyColumns }).map((field) => field.name);
        const filter = rangeExpression(ROW_FIELD, first, end);
        const entities = await client.query(name, { filter, fields, consistency: 'Bounded', signal });
        return entities.map((entity) => ({
          row: Number(entity[ROW_FIELD]),
          vector: Float32Array.from(entity[VECTOR_FIELD] as number[]),
          id: milvusRows.idOf(entity),
          document: milvusRows.documentOf(entity, pieces),
          keys: milvusRows.keysOf(entity, keyColumns),
        }));
      },
    },
    options,
  );
}

/**
 * Checks an index in OpenSearch: that its shards are there, its mapping is as published and its rows are complete, the checksums of the
 * files, and, unless `quick`, words of sampled rows and the checksum of all rows with vectors, ids and documents.
 */
export async function verifyOpenSearch(place: string, options: VerifyOptions): Promise<StoreReport> {
  const address = parseOpenSearchAddress(place);
  const client = await OpenSearchClient.connect(address);
  const { signal } = options;
  return verifyStore(
    {
      address: shownOpenSearch(address),
      close: () => client.close(),
      find: () => findIndex(client, address),
      problems: (found) => indexProblems(client, found),
      open: (found) => openFoundIndex(client, found),
      read: async ({ name, publication: { manifest } }, first, end) => {
        const search = {
          size: end - first,
          query: rowQuery({ type: 'range', first, end }),
          docvalue_fields: [ROW_FIELD, VECTOR_FIELD],
          _source: [DOCUMENT_FIELD, ID_FIELD],
        };
        const { hits } = await client.search(name, search, signal);
        return hits.map((hit) => {
          const row = Number(hit.fields?.[ROW_FIELD]?.[0]);
          const base64 = hit.fields?.[VECTOR_FIELD]?.[0];
          // An update in OpenSearch loses the vector, because it is not part of `_source`.
          const vector = base64 === undefined ? undefined : vectorOf(row, base64, manifest.dimension);
          return { row, vector, id: idOf(hit), document: documentOf(hit), keys: [] };
        });
      },
    },
    options,
  );
}

interface VerifiedStore<Found extends Pick<FoundPublication<never>, 'name' | 'publication'>> {
  readonly address: string;
  close(): Promise<void>;
  find(): Promise<Found>;
  problems(found: Found): Promise<readonly TrawlError[]>;
  open(found: Found): Promise<PublishedIndex>;
  /** The rows of [first, end), in no order. */
  read(found: Found, first: number, end: number): Promise<readonly ReadRow[]>;
}

type ReadRow = Omit<PublishedRow, 'lookups' | 'vector'> & { readonly vector: Float32Array | undefined };

/** Checks a published index. @internal Exported for tests. */
export async function verifyStore<Found extends Pick<FoundPublication<never>, 'name' | 'publication'>>(
  store: VerifiedStore<Found>,
  { quick, signal, onProgress }: VerifyOptions,
): Promise<StoreReport> {
  try {
    const found = await store.find();
    const { name, publication } = found;
    const problems = (await store.problems(found)).map(({ message }) => message);
    const report = { address: store.address, rows: storedRows(publication), problems };
    if (problems.length > 0) return report;
    // Reads the files and compares their checksums.
    const published = await store.open(found);
    try {
      if (!quick) problems.push(...(await wordProblems(published, signal)));
    } finally {
      await published.close();
    }
    if (quick) return report;
    const { manifest, pieces, contentSum, largestNorm } = publication;
    const { rows, dimension } = manifest;
    const fitting = Math.min(Math.floor(VALUES_A_READ / dimension), Math.floor(BYTES_A_READ / (pieces * PIECE_BYTES)));
    const atOnce = Math.max(1, Math.min(ROWS_A_READ, fitting));
    const sum = new ContentSum();
    for (let first = 0; first < rows; first += atOnce) {
      // The checksum lacks the rows that are not read.
      if (problems.length >= MAX_PROBLEMS) return report;
      throwIfCancelled(signal);
      onProgress(first, rows);
      for (const { vector, ...row } of await store.read(found, first, first + atOnce)) {
        if (vector === undefined) {
          problems.push(`Row ${row.row} has no vector.`);
          continue;
        }
        sum.add({ ...row, vector });
        if (upperNorm(vector) > largestNorm) problems.push(`Row ${row.row} is longer than any published vector.`);
      }
    }
    if (sum.hex !== contentSum) {
      problems.push(
        `The rows of ${name} have the checksum ${sum.hex}, but ${contentSum} was published. Publish the index again, under another name.`,
      );
    }
    return report;
  } finally {
    await store.close();
  }
}

/**
 * Compares the words of sampled rows with their documents: the store's score of a row for the beginning of its own text with the
 * score that is computed here from the document. @internal Exported for tests.
 */
export async function wordProblems(published: PublishedIndex, signal: AbortSignal): Promise<string[]> {
  const words = published.openWords();
  if (words === undefined) return [];
  const passages = published.openPassages();
  try {
    const { manifest, liveRows } = published;
    const { k1, b } = manifest.bm25!.made;
    const parameters = { ...DEFAULT_BM25, k1, b };
    const rows = sampledRows(manifest.rows, liveRows, SAMPLE);
    const documents = await passages.getMany(rows, signal);
    const problems: string[] = [];
    for (const [i, row] of rows.entries()) {
      const query = firstWords(documents[i]!);
      const filter = new RowBitmap(manifest.rows);
      filter.add(row);
      for (const [field, index] of words.indexes) {
        const found = await index.search({ queries: [query], k: 1, parameters, filter, signal });
        const [terms] = await index.explain({ query, rows: [row], parameters, signal });
        const expected = Math.fround(terms!.reduce((sum, { score }) => sum + score, 0));
        const score = found.counts[0] === 0 ? 0 : found.scores[0]!;
        if (score !== expected && found.isExact?.[0] !== false)
          problems.push(
            `The words of ${field} of row ${row} have the score ${score}; by its document it is ${expected}.`,
          );
      }
    }
    return problems;
  } finally {
    await Promise.all([words.close(), passages.close()]);
  }
}
