import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseMilvusAddress } from '../../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../../src/stores/milvus/milvus-client.ts';
import { collectionPlace, loadFiles } from '../../../src/stores/milvus/open-published-index.ts';
import { rowFields } from '../../../src/stores/milvus/published-rows.ts';
import {
  checkFields,
  checkSameCollection,
  MILVUS_DEFAULTS,
  publishToMilvus,
} from '../../../src/stores/publish/publish-milvus.ts';
import { heldPlace } from '../../../src/stores/published/find-publication.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, writeCorpus } from '../../indexer/build.ts';
import { described, FakeMilvus, NO_COLLECTION, type Replies } from '../milvus/fake-milvus.ts';

const FIELDS = rowFields(2, { pieces: 1, keyColumns: [0] });
const FILE_FIELDS = [
  { name: 'part', type: 'int64', isKey: true },
  { name: 'bytes', type: 'text' },
  { name: 'unused', type: 'vector', dimension: 2 },
] as const;

async function held(t: TestContext, replies: Replies) {
  const fake = await FakeMilvus.start(t, replies);
  const address = parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/wiki/c`);
  const client = await MilvusClient.connect(address);
  t.after(() => client.close());
  return { address, held: await heldPlace(collectionPlace(client, address), () => loadFiles(client, 'c', 1)), fake };
}

test('a name without a collection is free', async (t) => {
  const { held: found } = await held(t, { DescribeCollection: () => NO_COLLECTION });
  assert.deepEqual(found, { facts: undefined, hasFiles: false, complete: undefined, progress: undefined });
});

test('files that are not loaded are loaded with the copies of the publication', async (t) => {
  const full = { error_code: 'UnexpectedError', code: 1, reason: 'service memory limit exceeded' };
  const fake = await FakeMilvus.start(t, {
    DescribeCollection: ({ request: { collection_name: name } }) =>
      described(name, name === 'c' ? FIELDS : FILE_FIELDS),
    GetLoadState: () => ({ status: {}, state: 'LoadStateNotLoad' }),
    CreateIndex: () => ({}),
    LoadCollection: () => full,
  });
  const folder = await tempFolder(t);
  const corpus = writeCorpus(folder, { 'c.jsonl': [{ id: 'a', contents: 'a passage' }] });
  const out = join(folder, 'index');
  await build({ corpus, out });
  const { signal } = new AbortController();
  const options = { ...MILVUS_DEFAULTS, alias: undefined, replicas: 2, signal, onProgress: () => undefined };
  await assert.rejects(
    publishToMilvus(out, `milvus://127.0.0.1:${fake.port}/wiki/c`, options),
    /memory limit exceeded/,
  );
  const { request } = fake.asked.find(({ method }) => method === 'LoadCollection')!;
  assert.deepEqual([request.collection_name, request.replica_number], ['c_trawl', 2]);
});

test('a database that does not exist, an alias and a collection of something else are refused', async (t) => {
  const noDatabase = {
    status: { error_code: 'UnexpectedError', code: 800, reason: 'database not found[database=wiki]' },
  };
  await assert.rejects(
    held(t, { DescribeCollection: () => noDatabase }),
    trawlError('INDEX_NOT_FOUND', /no such database \(database not found\[database=wiki\]\)\. Create it/),
  );
  // As Milvus 2.3.5 answers.
  const listed = (names: string[]): Replies => ({
    DescribeCollection: () => NO_COLLECTION,
    ListDatabases: () => ({ status: {}, db_names: names }),
  });
  await assert.rejects(
    held(t, listed(['default', 'wiki2'])),
    trawlError('INDEX_NOT_FOUND', /no such database \(database not found: wiki\)/),
  );
  assert.equal((await held(t, listed(['default', 'wiki']))).held.facts, undefined);
  const refused = { status: { error_code: 'UnexpectedError', code: 1401, reason: 'permission deny' } };
  const hidden = await held(t, { ...listed([]), ListDatabases: () => refused });
  assert.equal(hidden.held.facts, undefined, 'a user who may not list databases can publish');
  await assert.rejects(
    held(t, { DescribeCollection: () => described('other', FIELDS) }),
    trawlError('INDEX_EXISTS', /c is an alias of other.*--alias c/),
  );
  await assert.rejects(
    held(t, {
      DescribeCollection: ({ request }) => (request.collection_name === 'c' ? described('c', FIELDS) : NO_COLLECTION),
    }),
    trawlError('INDEX_EXISTS', /the collection was not made by `trawl publish`.*drop it and its files \(c_trawl\)/),
  );
  await assert.rejects(
    held(t, {
      DescribeCollection: ({ request }) =>
        request.collection_name === 'c' ? NO_COLLECTION : described('c_trawl', FIELDS),
      ListDatabases: () => ({ status: {}, db_names: ['wiki'] }),
    }),
    trawlError('INDEX_EXISTS', /c_trawl, which belongs to this name, was not made by `trawl publish`/),
    'a publication would drop it',
  );
});

test('a collection that an unfinished publication of another index left is refused by its fields', () => {
  const address = { kind: 'collection', name: 'c', shown: 'milvus://h/wiki/c' } as const;
  const found = (fields: typeof FIELDS) => ({
    facts: {
      name: 'c',
      fields: described('c', fields).schema.fields.map(
        ({ name, data_type: type, is_primary_key: isKey, type_params: [dimension] }) => ({
          name,
          type,
          isKey,
          dimension: dimension && Number(dimension.value),
        }),
      ),
    },
    hasFiles: true,
    complete: undefined,
    progress: undefined,
  });
  checkFields(found(FIELDS), address, FIELDS);
  for (const [fields, difference] of [
    [
      rowFields(3, { pieces: 1, keyColumns: [0] }),
      /no vector \(FloatVector of 2\), the field vector \(FloatVector of 3\)/,
    ],
    [rowFields(2, { pieces: 2, keyColumns: [0] }), /the field document_2 \(VarChar\)/],
    [rowFields(2, { pieces: 1, keyColumns: [] }), /no column_0 \(Int64\)/],
    [rowFields(2, { pieces: 1, keyColumns: [0, 3] }), /the field column_3 \(Int64\)/],
    [FIELDS.map((field) => ({ ...field, isKey: field.name === 'id_hash' })), /no row \(Int64, key\)/],
  ] as const) {
    assert.throws(
      () => checkFields(found([...fields]), address, FIELDS),
      trawlError('INDEX_EXISTS', new RegExp(`has other fields than this index needs: .*${difference.source}`)),
    );
  }
});

test('rows of another index, or with another index over the vectors, are left alone', () => {
  const address = { kind: 'collection', name: 'c', shown: 'milvus://h/wiki/c' } as const;
  const progress = { fingerprint: 'a'.repeat(64), indexType: 'FLAT' } as never;
  const of = { facts: { name: 'c', fields: [] }, hasFiles: true, complete: undefined, progress };
  checkSameCollection(of, address, { fingerprint: 'a'.repeat(64), indexType: 'FLAT' });
  assert.throws(
    () => checkSameCollection(of, address, { fingerprint: 'b'.repeat(64), indexType: 'FLAT' }),
    trawlError('INDEX_EXISTS', /is of another index\. Publish under another name/),
  );
  assert.throws(
    () => checkSameCollection(of, address, { fingerprint: 'a'.repeat(64), indexType: 'HNSW' }),
    trawlError('INDEX_EXISTS', /was published with --index-type FLAT, not HNSW\./),
  );
});
