import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseMilvusAddress } from '../../src/milvus/milvus-address.ts';
import { MilvusCandidates, readRows } from '../../src/milvus/milvus-candidates.ts';
import { MilvusClient } from '../../src/milvus/milvus-client.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { FakeMilvus, type Replies } from './fake-milvus.ts';

const SCHEMA = {
  name: 'c',
  fields: [
    { name: 'row', data_type: 'Int64', is_primary_key: true, fieldID: 100 },
    { name: 'vector', data_type: 'FloatVector', type_params: [{ key: 'dim', value: '2' }], fieldID: 101 },
  ],
};
const DESCRIBED: Replies = { DescribeCollection: () => ({ status: {}, schema: SCHEMA, collection_name: 'c' }) };

/** The hits of one query, by rows. */
function found(...rows: number[]): object {
  return {
    status: {},
    results: {
      num_queries: 1,
      top_k: rows.length,
      scores: rows.map((_, i) => 1 - i / 10),
      ids: { int_id: { data: rows } },
      topks: [rows.length],
      fields_data: [{ type: 'Int64', field_name: 'row', scalars: { long_data: { data: rows } } }],
    },
  };
}

function rowsFound(...rows: number[]): object {
  return {
    status: {},
    fields_data: [{ type: 'Int64', field_name: 'row', scalars: { long_data: { data: rows } } }],
  };
}

async function opened(t: TestContext, replies: Replies) {
  const fake = await FakeMilvus.start(t, { ...DESCRIBED, ...replies });
  const client = await MilvusClient.connect(parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/c`));
  t.after(() => client.close());
  const source = new MilvusCandidates(client, {
    collection: 'c',
    dimension: 2,
    metric: 'inner-product',
    indexType: 'FLAT',
  });
  const search = () =>
    source.search(Float32Array.of(1, 0), { count: 1, limit: 3, among: 3, condition: { type: 'all' } });
  return { fake, client, search };
}

test('an error of Milvus with an empty list is a failure, never an empty answer', async (t) => {
  const wrong = { status: { error_code: 'UnexpectedError', code: 65_535, reason: 'node is gone' }, results: {} };
  const { fake, search } = await opened(t, { Search: () => wrong });
  await assert.rejects(search(), trawlError('STORE_FAILED', /could not search: node is gone/));
  assert.equal(fake.count('Search'), 1, 'an error that another attempt does not help is not repeated');
});

test('a call that the server does not have is a failure, although the package makes an empty reply of it', async (t) => {
  const { search } = await opened(t, {});
  await assert.rejects(search(), trawlError('STORE_FAILED', /could not search/));
});

test('a passing error is repeated, and the third attempt is the answer', async (t) => {
  let calls = 0;
  const busy = { status: { error_code: 'RateLimit', code: 8, reason: 'rate limit' }, results: {} };
  const { search } = await opened(t, { Search: () => (++calls < 3 ? busy : found(4, 2, 9)) });
  assert.deepEqual([...(await search())[0]!.rows], [4, 2, 9]);
  assert.equal(calls, 3);
});

test('searches are Bounded; rows are read with Eventually, and with Strong if one is missing', async (t) => {
  let queries = 0;
  const { fake, client, search } = await opened(t, {
    Search: () => found(1, 2, 3),
    Query: () => (++queries === 1 ? rowsFound(7) : rowsFound(9, 7)),
  });
  await search();
  const entities = await readRows(client, 'c', { rows: [7, 9], fields: ['row'] });
  assert.deepEqual(
    entities.map(({ row }) => Number(row)),
    [7, 9],
  );
  const levels = fake.asked.filter(({ request }) => 'consistency_level' in request);
  assert.deepEqual(
    levels.map(({ method, request }) => [method, request.consistency_level]),
    [
      ['Search', 'Bounded'],
      ['Query', 'Eventually'],
      ['Query', 'Strong'],
    ],
  );
});

test('a row that is missing also with Strong is a failure', async (t) => {
  const { fake, client } = await opened(t, { Query: () => rowsFound(7) });
  const read = readRows(client, 'c', { rows: [7, 9], fields: ['row'] });
  await assert.rejects(read, trawlError('STORE_FAILED', /did not return all of 2 rows/));
  assert.equal(fake.count('Query'), 2);
});

test('calls fail while the server is gone, with the time to wait, and succeed over the same client once it is back', async (t) => {
  const { fake, search } = await opened(t, { Search: () => found(1, 2, 3) });
  await search();
  fake.end();
  for (let i = 0; i < 2; i++) {
    await assert.rejects(search(), (error) => {
      trawlError('STORE_FAILED', /could not search/)(error);
      return (error as { details: { retryAfterS: number } }).details.retryAfterS === 5;
    });
  }
  await fake.listen();
  const end = performance.now() + 30_000;
  for (;;) {
    const answer = await search().catch((error: unknown) => error as Error);
    if (!(answer instanceof Error)) break;
    assert.ok(performance.now() < end, answer.message);
  }
});
