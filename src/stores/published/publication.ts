import { hash } from 'node:crypto';
import Type from 'typebox';
import { Check } from 'typebox/schema';
import { TrawlError } from '../../base/errors.ts';
import { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { Bm25Record, ColumnRecord, Count, Sha256 } from '../../index/manifest/schemas.ts';
import { LOOKUPS } from '../../index/passages/schema.ts';
import {
  type PartStore,
  PROGRESS_PART,
  PUBLICATION_PART,
  readRecord,
  StoredFile,
  writeRecord,
} from './stored-files.ts';

/** Version of the record and of the fields of the rows. */
const VERSION = 1;

/** A word of a field with its best row, by which a store's way of scoring is recognised. */
const WordProbe = Type.Object({
  field: Type.String({ minLength: 1 }),
  term: Type.String(),
  row: Count,
  /** Lucene's score, and Elasticsearch's with the factor k1 + 1. */
  score: Type.Number(),
  factoredScore: Type.Number(),
});
export type WordProbe = Type.Static<typeof WordProbe>;

/** The counts of a field over the live rows. */
const WordCounts = Type.Object({ field: Type.String({ minLength: 1 }), documents: Count, tokens: Count });

/** What a publication is made of: the same for the first and each resumed run. */
const PublicationPlan = Type.Object({
  format: Type.Literal('trawl-publication'),
  version: Type.Literal(VERSION),
  /** `fingerprintOf` the published index. */
  fingerprint: Sha256,
  /** The store's name of the index over the vectors. */
  indexType: Type.String({ minLength: 1 }),
  /** How many pieces of 65,535 bytes the longest document has. In Milvus, they are fields. */
  pieces: Type.Integer({ minimum: 1 }),
  /** Positions of the columns that are fields, over which Milvus evaluates filters; absent: none. */
  keyColumns: Type.Optional(Type.Array(Count)),
  /** Settings of the words that the rows were stored with, for BM25; absent: none. */
  words: Type.Optional(Bm25Record),
});
export type PublicationPlan = Type.Static<typeof PublicationPlan>;

/** How far an unfinished publication got. */
const Progress = Type.Intersect([
  PublicationPlan,
  Type.Object({
    /** Rows below this one are stored. */
    nextRow: Count,
    /** The largest norm of a row below it. */
    largestNorm: Type.Number({ minimum: 0 }),
    /** The `ContentSum` of the rows below it. */
    contentSum: Sha256,
  }),
]);
export type Progress = Type.Static<typeof Progress>;

/** Written last: with it, what was published is a complete index. */
const Publication = Type.Intersect([
  PublicationPlan,
  Type.Object({
    manifest: IndexManifest,
    largestNorm: Type.Number({ minimum: 0 }),
    contentSum: Sha256,
    lookups: Type.Array(Type.Enum([...LOOKUPS])),
    /** One file for each shard of the index, in row order. */
    columns: Type.Array(Type.Intersect([ColumnRecord, Type.Object({ files: Type.Array(StoredFile) })])),
    /** The bitmap of deleted rows, which are not in the store. */
    deletedRows: Type.Union([StoredFile, Type.Null()]),
    /** Of an index with words. Their scores are the store's own, by the counts of all its shards; here is what they are checked with. */
    wordScores: Type.Optional(
      Type.Object({
        scoredBy: Type.Literal('OpenSearch'),
        counts: Type.Array(WordCounts),
        probes: Type.Array(WordProbe),
      }),
    ),
  }),
]);
export type Publication = Type.Static<typeof Publication>;

/** A hash of everything that a published index takes from its folder. */
export function fingerprintOf(manifest: IndexManifest): string {
  const { generation, rows, dimension, metric, tombstones, columns = [], shards } = manifest;
  const deleted = tombstones?.sha256 ?? null;
  const generations = shards.map((shard) => shard.generation);
  const facts = { generation, rows, dimension, metric, deleted, columns, shards: generations };
  return hash('sha256', JSON.stringify(facts));
}

export function planOf(
  manifest: IndexManifest,
  facts: Pick<PublicationPlan, 'indexType' | 'pieces' | 'keyColumns' | 'words'>,
): PublicationPlan {
  return { format: 'trawl-publication', version: VERSION, fingerprint: fingerprintOf(manifest), ...facts };
}

/** Undefined if the publication is unfinished. @throws TrawlError INDEX_VERSION_UNSUPPORTED or INDEX_MANIFEST_INVALID. */
export function readPublication(store: PartStore): Promise<Publication | undefined> {
  return readChecked(store, PUBLICATION_PART, Publication);
}

export function readProgress(store: PartStore): Promise<Progress | undefined> {
  return readChecked(store, PROGRESS_PART, Progress);
}

export function writePublication(store: PartStore, publication: Publication): Promise<void> {
  return writeRecord(store, PUBLICATION_PART, publication);
}

export function writeProgress(store: PartStore, progress: Progress): Promise<void> {
  return writeRecord(store, PROGRESS_PART, progress);
}

async function readChecked<Schema extends Type.TSchema>(
  store: PartStore,
  part: number,
  schema: Schema,
): Promise<Type.Static<Schema> | undefined> {
  const record = await readRecord(store, part);
  if (record === undefined) return undefined;
  const { version } = record as { version?: unknown };
  if (typeof version === 'number' && version > VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `The record in ${store.place} has version ${version}; this program reads version ${VERSION}. Use the program that published the index.`,
    );
  }
  if (Check(schema, record)) return record as Type.Static<Schema>;
  throw new TrawlError(
    'INDEX_MANIFEST_INVALID',
    `The record in ${store.place} is damaged. Publish the index again, under another name.`,
  );
}

/** The number of rows in the store: those that are not deleted. */
export function storedRows({ manifest }: Publication): number {
  return manifest.rows - (manifest.tombstones?.rows ?? 0);
}
