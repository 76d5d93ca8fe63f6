import { TrawlError } from '../../base/errors.ts';
import { analyser } from '../../engine/lexical/analysis/analysers.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import type { Bm25Record } from '../../index/manifest/schemas.ts';
import { fieldText } from '../../index/passages/document-fields.ts';
import { LOOKUPS } from '../../index/passages/schema.ts';
import { MAX_CANDIDATES } from '../published/candidate-source.ts';
import {
  ID_FIELD,
  lookupField,
  lookupHash,
  type PublishedRow,
  ROW_FIELD,
  VECTOR_FIELD,
} from '../published/published-row.ts';
import type { PassageReader } from '../published/stored-passages.ts';
import type { OpenSearchClient, OpenSearchHit } from './opensearch-client.ts';
import { rowQuery } from './row-query.ts';

/** The field with the document of a row. The index has an entry for each live row. */
export const DOCUMENT_FIELD = 'document';
/** The similarity of the fields with words: OpenSearch's BM25 with k1 and b of the index. */
export const SIMILARITY = 'trawl';

/** OpenSearch reads texts of up to 50 million characters; JSON may write one as six. */
export const MAX_DOCUMENT_BYTES = 2 ** 23;

export function wordField(field: LexicalField): string {
  return `words_${field}`;
}

/** Text that is returned and not searched. */
const STORED_TEXT = { type: 'keyword', index: false, doc_values: false };
/** The terms come from here, separated by spaces: the same as in the folder. Positions serve phrase queries, which Trawl does not have. */
const WORDS = { type: 'text', analyzer: 'whitespace', index_options: 'freqs', similarity: SIMILARITY };

export function rowMappings(words?: Bm25Record) {
  const wordFields = (words?.fields ?? []).map(wordField);
  return {
    dynamic: 'strict',
    // Vectors are read from their doc values, and words are only searched.
    _source: { excludes: [VECTOR_FIELD, ...wordFields] },
    properties: {
      [ROW_FIELD]: { type: 'long' },
      // float32, little-endian.
      [VECTOR_FIELD]: { type: 'binary', doc_values: true },
      [ID_FIELD]: STORED_TEXT,
      [DOCUMENT_FIELD]: STORED_TEXT,
      ...Object.fromEntries(LOOKUPS.map((by) => [lookupField(by), { type: 'keyword' }])),
      ...Object.fromEntries(wordFields.map((field) => [field, WORDS])),
    },
  };
}

/** @param copies of each shard, on different nodes. */
export function rowSettings({ shards, copies, words }: { shards: number; copies: number; words?: Bm25Record }): object {
  return {
    similarity: words && { [SIMILARITY]: { type: 'BM25', k1: words.k1, b: words.b } },
    number_of_shards: shards,
    number_of_replicas: copies - 1,
    // Refreshed once, after all rows.
    refresh_interval: '-1',
    // One more than are asked for, so that a row too many shows.
    max_result_window: MAX_CANDIDATES + 1,
  };
}

/** @param words the fields with the terms of the document (`documentWords`). */
export function documentOfRow(
  { row, vector, document, id, lookups }: PublishedRow,
  words: Readonly<Record<string, string>> = {},
): object {
  const hashes = LOOKUPS.map((by) => [lookupField(by), lookupHash(by, lookups[by])] as const);
  return {
    [ROW_FIELD]: row,
    [VECTOR_FIELD]: Buffer.from(Float32Array.from(vector).buffer).toString('base64'),
    [DOCUMENT_FIELD]: document,
    [ID_FIELD]: id ?? undefined,
    ...Object.fromEntries(hashes.filter(([, hash]) => hash !== '0')),
    ...words,
  };
}

/** Returns a function that makes the fields with the terms of a document. */
export function documentWords(
  words: Pick<Bm25Record, 'analyser' | 'fields'>,
): (document: string) => Record<string, string> {
  const analyse = analyser(words.analyser);
  return (document) =>
    Object.fromEntries(words.fields.map((field) => [wordField(field), analyse(fieldText(document, field)).join(' ')]));
}

export function idOf({ _source }: OpenSearchHit): string | null {
  return (_source?.[ID_FIELD] as string | undefined) ?? null;
}

export function documentOf({ _source }: OpenSearchHit): string {
  return String(_source?.[DOCUMENT_FIELD]);
}

/** The vector of a doc value. @throws TrawlError STORE_DIFFERS if it has another dimension. */
export function vectorOf(row: number, base64: unknown, dimension: number): Float32Array {
  const bytes = Buffer.from(String(base64 ?? ''), 'base64');
  const values = new Float32Array(dimension);
  if (bytes.length !== values.byteLength) {
    throw new TrawlError(
      'STORE_DIFFERS',
      `The vector of row ${row} has ${bytes.length} bytes, expected ${values.byteLength}. Publish the index again, under another name.`,
    );
  }
  new Uint8Array(values.buffer).set(bytes);
  return values;
}

export function openSearchPassages(client: OpenSearchClient, index: string): PassageReader {
  return {
    documents: async (rows, signal) => {
      const hits = await readRows(client, index, { rows, source: [DOCUMENT_FIELD], signal });
      return hits.map(documentOf);
    },
    ids: async (rows, signal) => {
      const hits = await readRows(client, index, { rows, source: [ID_FIELD], signal });
      return hits.map(idOf);
    },
    lookUp: async (by, hashes, signal) => {
      const field = lookupField(by);
      const found: { row: number; hash: string }[] = [];
      // Pages in the order of rows: many passages may have one title.
      for (let after: number | undefined; ; after = found.at(-1)!.row) {
        const { hits } = await client.search(
          index,
          {
            size: MAX_CANDIDATES,
            query: { terms: { [field]: hashes } },
            sort: [{ [ROW_FIELD]: 'asc' }],
            search_after: after === undefined ? undefined : [after],
            docvalue_fields: [field],
            _source: false,
          },
          signal,
        );
        found.push(...hits.map(({ sort, fields }) => ({ row: Number(sort?.[0]), hash: String(fields?.[field]?.[0]) })));
        if (hits.length < MAX_CANDIDATES) return found;
      }
    },
  };
}

interface RowRead {
  readonly rows: readonly number[];
  readonly source?: readonly string[];
  readonly docValues?: readonly string[];
  readonly signal?: AbortSignal;
}

/** The documents of distinct rows, in their order. @throws TrawlError STORE_FAILED if one of them is missing. */
export async function readRows(
  client: OpenSearchClient,
  index: string,
  { rows, source, docValues = [], signal }: RowRead,
): Promise<readonly OpenSearchHit[]> {
  if (rows.length === 0) return [];
  const { hits } = await client.search(
    index,
    {
      size: rows.length,
      query: rowQuery({ type: 'in', rows }),
      docvalue_fields: [ROW_FIELD, ...docValues],
      _source: source ?? false,
    },
    signal,
  );
  const byRow = new Map(hits.map((hit) => [Number(hit.fields?.[ROW_FIELD]?.[0]), hit]));
  const found = rows.map((row) => byRow.get(row));
  if (!found.includes(undefined)) return found as OpenSearchHit[];
  throw new TrawlError(
    'STORE_FAILED',
    `OpenSearch at ${client.server} did not return all of ${rows.length} rows of ${index} that it has. Some of its data may not be available at the moment.`,
  );
}
