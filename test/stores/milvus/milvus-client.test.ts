import assert from 'node:assert/strict';
import dns from 'node:dns';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { parseMilvusAddress } from '../../../src/stores/milvus/milvus-address.ts';
import { milvusCandidates, readRows } from '../../../src/stores/milvus/milvus-candidates.ts';
import { MilvusClient } from '../../../src/stores/milvus/milvus-client.ts';
import { milvusPassages } from '../../../src/stores/milvus/published-rows.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
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

function counted(rows: number): object {
  return {
    status: {},
    fields_data: [{ type: 'Int64', field_name: 'count(*)', scalars: { long_data: { data: [rows] } } }],
  };
}

async function opened(t: TestContext, replies: Replies) {
  const fake = await FakeMilvus.start(t, { ...DESCRIBED, Query: () => counted(3), ...replies });
  const client = await MilvusClient.connect(parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/c`));
  t.after(() => client.close());
  const source = milvusCandidates(client, {
    collection: 'c',
    dimension: 2,
    metric: 'inner-product',
    indexType: 'FLAT',
    rows: 3,
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

test('a search fails if Milvus does not find all rows beside it or after it, and the next one does not', async (t) => {
  for (const counts of [[2], [3, 2]]) {
    const left = [...counts];
    const { search } = await opened(t, {
      Search: () => found(1, 2, 3),
      Query: () => counted(left.shift() ?? 3),
    });
    await assert.rejects(search(), trawlError('STORE_FAILED', /finds 2 rows in c, but 3 were published/));
    assert.equal((await search())[0]!.rows.length, 3);
  }
});

test('a look-up fails if Milvus does not find all rows beside it or after it, and does not say that there is no such passage', async (t) => {
  for (const counts of [[2], [3, 2]]) {
    const left = [...counts];
    const { client } = await opened(t, {
      Query: ({ request }) =>
        request.output_fields[0] === 'count(*)' ? counted(left.shift() ?? 3) : { status: {}, fields_data: [] },
    });
    const passages = milvusPassages(client, { collection: 'c', rows: 3 }, 1);
    await assert.rejects(
      passages.lookUp('id', ['7']),
      trawlError('STORE_FAILED', /finds 2 rows in c, but 3 were published/),
    );
    assert.deepEqual(await passages.lookUp('id', ['7']), []);
  }
});

test('query nodes, their memory and the segments that each holds are read', async (t) => {
  const node = (type: string, id: number) => ({
    infos: { type, id, hardware_infos: { memory: 8_000, memory_usage: 1_000 } },
    connected: [],
  });
  const { client } = await opened(t, {
    GetMetrics: () => ({
      status: {},
      response: JSON.stringify({ nodes_info: [node('querycoord', 1), node('querynode', 7), node('querynode', 9), {}] }),
    }),
    GetQuerySegmentInfo: () => ({
      status: {},
      infos: [
        { num_rows: '30', state: 'Sealed', nodeIds: ['7', '9'] },
        { num_rows: '20', state: 'Growing', nodeIds: ['9'] },
      ],
    }),
  });
  assert.deepEqual(
    await client.queryNodes(),
    [7, 9].map((id) => ({ id, memoryBytes: 8_000, usedBytes: 1_000 })),
  );
  assert.deepEqual(await client.segments('c'), [
    { rows: 30, isSealed: true, nodes: [7, 9] },
    { rows: 20, isSealed: false, nodes: [9] },
  ]);
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

test('a search that is cancelled in the pause before its next attempt ends at once', async (t) => {
  const busy = { status: { error_code: 'RateLimit', code: 8, reason: 'rate limit' }, results: {} };
  const { fake, client } = await opened(t, { Search: () => busy });
  const stop = new AbortController();
  const search = client.search({
    collection: 'c',
    queries: Float32Array.of(1, 0),
    dimension: 2,
    limit: 3,
    metric: 'IP',
    filter: '',
    params: {},
    signal: stop.signal,
  });
  // The pause after the third attempt is the longest; it begins once the client has read the reply.
  while (fake.count('Search') < 3) await pause(10);
  await pause(100);
  stop.abort();
  await assert.rejects(Promise.race([search, nextIteration()]), trawlError('CANCELLED'));
  assert.equal(fake.count('Search'), 3);
});

test('searches are Bounded; rows are read with Eventually, and with Strong if one is missing', async (t) => {
  // The rows are counted beside the search and after it.
  const replies = [counted(3), counted(3), rowsFound(7), rowsFound(9, 7)];
  const { fake, client, search } = await opened(t, { Search: () => found(1, 2, 3), Query: () => replies.shift()! });
  await search();
  const entities = await readRows(client, 'c', { rows: [7, 9], fields: ['row'] });
  assert.deepEqual(
    entities.map(({ row }) => Number(row)),
    [7, 9],
  );
  const levels = fake.asked.filter(({ request }) => 'consistency_level' in request);
  assert.deepEqual(
    [...levels.slice(0, 3).sort((a, b) => (a.method < b.method ? -1 : 1)), ...levels.slice(3)].map(
      ({ method, request }) => [method, request.consistency_level],
    ),
    [
      ['Query', 'Bounded'],
      ['Query', 'Bounded'],
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

test('a host whose name moves to another address is found there by the same client', async (t) => {
  const fake = await FakeMilvus.start(t, { ...DESCRIBED, Query: () => counted(3), Search: () => found(1, 2, 3) });
  let address = '127.0.0.1';
  const asked: string[] = [];
  const { lookup } = dns.promises;
  dns.promises.lookup = (async (host: string) => {
    asked.push(host);
    return [{ address, family: 4 }];
  }) as unknown as typeof lookup;
  t.after(() => {
    dns.promises.lookup = lookup;
  });
  const client = await MilvusClient.connect(parseMilvusAddress(`milvus://milvus.test:${fake.port}/c`));
  t.after(() => client.close());
  const facts = { collection: 'c', dimension: 2, metric: 'inner-product', indexType: 'FLAT', rows: 3 } as const;
  const source = milvusCandidates(client, facts);
  const search = () =>
    source.search(Float32Array.of(1, 0), { count: 1, limit: 3, among: 3, condition: { type: 'all' } });
  assert.equal((await search())[0]!.rows.length, 3);
  fake.end();
  address = '127.0.0.2';
  await fake.listen(address);
  const start = performance.now();
  for (;;) {
    const answer = await search().catch((error: unknown) => error as Error);
    if (!(answer instanceof Error)) break;
    // Without a setting of its own, the client resolves a name again after 30 s at the earliest.
    assert.ok(performance.now() - start < 20_000, answer.message);
  }
  assert.ok(asked.length >= 2 && asked.every((host) => host === 'milvus.test'), asked.join());
});

test('after a refusal, the message says which line was used, or why none was, without user and password', async (t) => {
  const refused = { status: { error_code: 'UnexpectedError', code: 1400, reason: 'auth check failure' } };
  const { fake, client } = await opened(t, { GetLoadState: () => refused });
  const variables = ['TRAWL_MILVUS_CREDENTIALS', 'TRAWL_MILVUS_CREDENTIALS_FILE'] as const;
  t.after(() => {
    for (const variable of variables) delete process.env[variable];
  });
  const file = join(await tempFolder(t), 'credentials');
  const line = `milvus://root:Secret9@127.0.0.1:${fake.port}`;
  await client.close();
  for (const [variable, value, lines, message] of [
    [
      undefined,
      '',
      '',
      /No password was sent, because neither TRAWL_MILVUS_CREDENTIALS_FILE nor TRAWL_MILVUS_CREDENTIALS is set\./,
    ],
    [
      variables[0],
      'milvus://root:Secret9@other',
      '',
      /because TRAWL_MILVUS_CREDENTIALS has no line for milvus:\/\/127\.0\.0\.1:\d+\./,
    ],
    [
      variables[1],
      file,
      'milvus+tls://root:Secret9@127.0.0.1\n',
      /because the file .*credentials \(TRAWL_MILVUS_CREDENTIALS_FILE\) has no line for milvus:\/\/127/,
    ],
    [
      variables[0],
      line,
      '',
      /Check user and password in the line for milvus:\/\/127\.0\.0\.1:\d+ of TRAWL_MILVUS_CREDENTIALS, /,
    ],
    [
      variables[1],
      file,
      `${line}\n`,
      /Check user and password in the line for milvus:\/\/127\.0\.0\.1:\d+ of the file .*credentials /,
    ],
  ] as const) {
    for (const each of variables) delete process.env[each];
    if (variable !== undefined) process.env[variable] = value;
    writeFileSync(file, lines);
    const other = await MilvusClient.connect(parseMilvusAddress(`milvus://127.0.0.1:${fake.port}/c`));
    await assert.rejects(other.isLoaded('c'), (error: Error) => {
      trawlError('STORE_REFUSED', message)(error);
      assert.doesNotMatch(error.message, /Secret9|root/);
      return true;
    });
    await other.close();
  }
});
