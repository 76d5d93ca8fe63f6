import { TrawlError } from '../../base/errors.ts';
import type { Bm25Record } from '../../index/manifest/schemas.ts';
import { LOOKUPS, type Lookup } from '../../index/passages/schema.ts';
import { MAX_CANDIDATES } from '../published/candidate-source.ts';
import { lookupHash, type PublishedRow } from '../published/published-row.ts';
import { similaritySettings, wordField, wordMappings } from './words/stored-words.ts';

/** Fields of the index, with a document for each live row. */
export const ROW_FIELD = 'row';
export const VECTOR_FIELD = 'vector';
export const DOCUMENT_FIELD = 'document';
export const ID_FIELD = 'passage_id';

/** OpenSearch reads texts of up to 50 million characters; JSON may write one as six. */
export const MAX_DOCUMENT_BYTES = 2 ** 23;

/** The field by which passages are looked up: a hash of the key. Terms of OpenSearch have 32,766 bytes at most; a key may have more. */
export function lookupField(by: Lookup): string {
  return `${by}_hash`;
}

/** Text that is returned and not searched. */
const STORED_TEXT = { type: 'keyword', index: false, doc_values: false };

interface RowMappings {
  readonly dynamic: string;
  readonly _source: { readonly excludes: readonly string[] };
  readonly properties: Readonly<Record<string, object>>;
}

/** `words`: of an index that can be searched by BM25. */
export function rowMappings(words?: Bm25Record): RowMappings {
  return {
    dynamic: 'strict',
    // Vectors are read from their doc values, and words are only searched.
    _source: { excludes: [VECTOR_FIELD, ...(words?.fields ?? []).map(wordField)] },
    properties: {
      [ROW_FIELD]: { type: 'long' },
      // float32, little-endian.
      [VECTOR_FIELD]: { type: 'binary', doc_values: true },
      [ID_FIELD]: STORED_TEXT,
      [DOCUMENT_FIELD]: STORED_TEXT,
      ...Object.fromEntries(LOOKUPS.map((by) => [lookupField(by), { type: 'keyword' }])),
      ...(words === undefined ? {} : wordMappings(words)),
    },
  };
}

interface RowSettings {
  readonly shards: number;
  /** Of each shard, on different nodes. */
  readonly copies: number;
  readonly words?: Bm25Record;
}

export function rowSettings({ shards, copies, words }: RowSettings): object {
  return {
    ...(words === undefined ? {} : similaritySettings(words)),
    number_of_shards: shards,
    number_of_replicas: copies - 1,
    // Refreshed once, after all rows.
    refresh_interval: '-1',
    // One more than are asked for, so that a row too many shows.
    max_result_window: MAX_CANDIDATES + 1,
  };
}

/** `words`: the fields with the terms of the document. */
export function documentOfRow(
  { row, vector, document, id, lookups }: PublishedRow,
  words: Readonly<Record<string, string>> = {},
): object {
  const hashes = LOOKUPS.map((by) => [lookupField(by), lookupHash(by, lookups[by])] as const);
  return {
    [ROW_FIELD]: row,
    [VECTOR_FIELD]: Buffer.from(Float32Array.from(vector).buffer).toString('base64'),
    [DOCUMENT_FIELD]: document,
    ...(id === null ? {} : { [ID_FIELD]: id }),
    ...Object.fromEntries(hashes.filter(([, hash]) => hash !== '0')),
    ...words,
  };
}

/**
 * The vector of a doc value.
 *
 * @throws TrawlError STORE_DIFFERS if it has another dimension.
 */
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
