import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseMilvusAddress } from '../../../src/stores/milvus/milvus-address.ts';
import { MilvusClient } from '../../../src/stores/milvus/milvus-client.ts';
import { rowFields } from '../../../src/stores/milvus/published-rows.ts';
import { checkFields, checkSameIndex, heldCollection } from '../../../src/stores/publish/held-collection.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { described, FakeMilvus, NO_COLLECTION, type Replies } from './fake-milvus.ts';

const FIELDS = rowFields(2, { pieces: 1, keyColumns: [0] });

async function held(t: TestContext, replies: Replies) {
  const fake = await FakeMilvus.start(t, replies);
  const address = parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/wiki/c`);
  const client = await MilvusClient.connect(address);
  t.after(() => client.close());
  return { address, held: await heldCollection(client, address, 1), fake };
}

test('a name without a collection is free', async (t) => {
  const { held: found } = await held(t, { DescribeCollection: () => NO_COLLECTION });
  assert.deepEqual(found, { fields: undefined, hasFiles: false, complete: undefined, progress: undefined });
});

test('files that are not loaded are loaded with the copies of the publication', async (t) => {
  const full = { error_code: 'UnexpectedError', code: 1, reason: 'service memory limit exceeded' };
  const fake = await FakeMilvus.start(t, {
    DescribeCollection: ({ request }) => described(request.collection_name, FIELDS),
    GetLoadState: () => ({ status: {}, state: 'LoadStateNotLoad' }),
    CreateIndex: () => ({}),
    LoadCollection: () => full,
  });
  const address = parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/wiki/c`);
  const client = await MilvusClient.connect(address);
  t.after(() => client.close());
  await assert.rejects(heldCollection(client, address, 2), /memory limit exceeded/);
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
  assert.equal((await held(t, listed(['default', 'wiki']))).held.fields, undefined);
  const refused = { status: { error_code: 'UnexpectedError', code: 1401, reason: 'permission deny' } };
  const hidden = await held(t, { ...listed([]), ListDatabases: () => refused });
  assert.equal(hidden.held.fields, undefined, 'a user who may not list databases can publish');
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
});

test('a collection that an unfinished publication of another index left is refused by its fields', () => {
  const address = parseMilvusAddress('milvus://h/wiki/c');
  const found = (fields: typeof FIELDS) => ({
    fields: described('c', fields).schema.fields.map(
      ({ name, data_type: type, is_primary_key: isKey, type_params }) => ({
        name,
        type,
        isKey,
        ...(type_params.length === 0 ? {} : { dimension: Number(type_params[0]!.value) }),
      }),
    ),
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
  const address = parseMilvusAddress('milvus://h/wiki/c');
  const progress = { fingerprint: 'a'.repeat(64), indexType: 'FLAT' } as never;
  const of = { fields: [], hasFiles: true, complete: undefined, progress };
  checkSameIndex(of, address, { fingerprint: 'a'.repeat(64), indexType: 'FLAT' });
  assert.throws(
    () => checkSameIndex(of, address, { fingerprint: 'b'.repeat(64), indexType: 'FLAT' }),
    trawlError('INDEX_EXISTS', /is of another index\. Publish into a collection of another name/),
  );
  assert.throws(
    () => checkSameIndex(of, address, { fingerprint: 'a'.repeat(64), indexType: 'HNSW' }),
    trawlError('INDEX_EXISTS', /was published with --index-type FLAT, not HNSW,/),
  );
});
