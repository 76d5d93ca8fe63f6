import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as pause } from 'node:timers/promises';
import { indexProblems, SCRIPT_INDEX } from '../../../src/stores/opensearch/open-published-index.ts';
import { parseOpenSearchAddress } from '../../../src/stores/opensearch/opensearch-address.ts';
import { openSearchCandidates } from '../../../src/stores/opensearch/opensearch-candidates.ts';
import { OpenSearchClient } from '../../../src/stores/opensearch/opensearch-client.ts';
import { readRows, rowMappings } from '../../../src/stores/opensearch/stored-rows.ts';
import type { Publication } from '../../../src/stores/published/publication.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeOpenSearch, type FakeReply, searchReply, VERSION_REPLY } from './fake-opensearch.ts';

/** The index's name says what is wrong with the reply to its search. */
const INCOMPLETE: Readonly<Record<string, [reply: FakeReply, reason: RegExp]>> = {
  failed: [{ body: searchReply({}, { successful: 1, failed: 1 }) }, /of 2 shards, 1 were searched, 1 failed/],
  lost: [{ body: searchReply({}, { successful: 1 }) }, /of 2 shards, 1 were searched/],
  skipped: [{ body: searchReply({}, { skipped: 1 }) }, /1 were skipped/],
  none: [{ body: searchReply({}, { total: 0, successful: 0 }) }, /of 0 shards/],
  unsaid: [{ body: searchReply({ _shards: undefined }) }, /of undefined shards/],
  late: [{ body: searchReply({ timed_out: true }) }, /ran out of time/],
  early: [{ body: searchReply({ terminated_early: true }) }, /ended before its end/],
  uncounted: [{ body: searchReply({ hits: { total: { value: 1, relation: 'gte' }, hits: [] } }) }, /no exact number/],
  busy: [
    { status: 429, body: { error: { type: 'rejected_execution_exception', reason: 'queue full' } } },
    /queue full/,
  ],
  down: [{ status: 503, body: { error: { type: 'cluster_block_exception', reason: 'no master' } } }, /no master/],
  broken: [
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 }).write('{"responses"');
      setTimeout(() => response.destroy(), 20);
    },
    /could not search/,
  ],
  reset: [(response) => void response.destroy(), /could not search/],
};

function answer(replies: Readonly<Record<string, FakeReply>>) {
  return ({ path }: { path: string }): FakeReply => {
    if (path === '/') return { body: VERSION_REPLY };
    const reply = replies[path.split('/')[1]!]!;
    if (typeof reply === 'function' || (reply.status ?? 200) !== 200) return reply;
    return { body: { responses: [reply.body] } };
  };
}

test('an answer that may be incomplete is never given: it is asked for four times, then refused', async (t) => {
  const replies = Object.fromEntries(Object.entries(INCOMPLETE).map(([name, [reply]]) => [name, reply]));
  const fake = await FakeOpenSearch.start(t, answer(replies));
  const client = await fake.client(t);
  await Promise.all(
    Object.entries(INCOMPLETE).map(async ([name, [, reason]]) => {
      await assert.rejects(
        client.search(name, { size: 1 }),
        (error: Error & { details?: { retryAfterS?: number } }) => {
          assert.ok((error.details?.retryAfterS ?? 0) >= 1);
          return trawlError('STORE_FAILED', reason)(error);
        },
      );
      assert.equal(fake.count(`/${name}/_msearch`), 4, name);
    }),
  );
});

test('an answer that comes with the second attempt is given', async (t) => {
  const fake = await FakeOpenSearch.start(t, ({ path }, attempt) => {
    if (path === '/') return { body: VERSION_REPLY };
    return attempt === 0
      ? { body: { responses: [searchReply({}, { successful: 1, failed: 1 })] } }
      : { body: { responses: [searchReply({ hits: { total: { value: 7, relation: 'eq' }, hits: [] } })] } };
  });
  const client = await fake.client(t);
  assert.equal((await client.search('i', { size: 0 })).total, 7);
});

test('a search allows no partial results', async (t) => {
  const fake = await FakeOpenSearch.start(t, answer({ i: { body: searchReply() } }));
  const client = await fake.client(t);
  await client.search('i', { size: 1 });
  const [header, search] = fake.requests.at(-1)!.body.trim().split('\n');
  assert.deepEqual(JSON.parse(header!), { allow_partial_search_results: false });
  assert.deepEqual(JSON.parse(search!), { size: 1, track_total_hits: true });
});

test('what another attempt cannot help fails at once', async (t) => {
  const fake = await FakeOpenSearch.start(
    t,
    answer({
      wrong: { status: 400, body: { error: { type: 'parsing_exception', reason: 'unknown key' } } },
      page: (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('<html>'),
      gone: { status: 404, body: { error: { type: 'index_not_found_exception', reason: 'no such index [gone]' } } },
      script: {
        body: {
          status: 400,
          error: {
            type: 'search_phase_execution_exception',
            reason: 'all shards failed',
            root_cause: [
              { type: 'script_exception', reason: 'compile error', caused_by: { reason: 'script_lang not supported' } },
            ],
          },
        },
      },
    }),
  );
  const client = await fake.client(t);
  for (const [name, reason] of [
    ['wrong', /unknown key/],
    ['page', /not JSON/],
    ['gone', /no such index/],
    ['script', /script_lang not supported/],
  ] as const) {
    await assert.rejects(client.search(name, { query: 'my secret question' }), (error: Error) => {
      assert.doesNotMatch(error.message, /secret/);
      return trawlError('STORE_FAILED', reason)(error);
    });
    assert.equal(fake.count(`/${name}/_msearch`), 1, name);
  }
});

test('a program that is not OpenSearch 2 or newer is refused', async (t) => {
  for (const [version, reason] of [
    [{ number: '8.17.1' }, /not OpenSearch, but says version 8\.17\.1/],
    [{ number: '1.3.0', distribution: 'opensearch' }, /opensearch 1\.3\.0; expected OpenSearch 2/],
  ] as const) {
    const fake = await FakeOpenSearch.start(t, () => ({ body: { version } }));
    await assert.rejects(fake.client(t), trawlError('NOT_SUPPORTED', reason));
  }
  const other = await FakeOpenSearch.start(t, () => ({ body: { hello: 'world' } }));
  await assert.rejects(other.client(t), trawlError('STORE_FAILED', /no version/));
});

test('user and password are sent, and shown in no message', async (t) => {
  const fake = await FakeOpenSearch.start(t, () => (response) => {
    response.writeHead(401, { 'content-type': 'text/plain' }).end('Unauthorized');
  });
  process.env.TRAWL_OPENSEARCH_CREDENTIALS = `opensearch://someone:secret@127.0.0.1:${fake.port}`;
  t.after(() => {
    delete process.env.TRAWL_OPENSEARCH_CREDENTIALS;
  });
  await assert.rejects(fake.client(t), (error: Error) => {
    assert.doesNotMatch(`${error.message} ${error.stack}`, /secret|someone/);
    return trawlError('STORE_REFUSED', /TRAWL_OPENSEARCH_CREDENTIALS/)(error);
  });
  assert.equal(fake.requests[0]!.headers.authorization, `Basic ${Buffer.from('someone:secret').toString('base64')}`);
});

test('of several nodes, one that does not answer is passed over', async (t) => {
  const fake = await FakeOpenSearch.start(t, answer({ i: { body: searchReply() } }));
  const client = await OpenSearchClient.connect(
    parseOpenSearchAddress(`opensearch://127.0.0.1:1,127.0.0.1:${fake.port}/i`),
  );
  t.after(() => client.close());
  for (let i = 0; i < 3; i++) assert.equal((await client.search('i', {})).total, 0);
});

test('a cancelled search closes its connection, which ends it in OpenSearch', async (t) => {
  let closed: Promise<void> | undefined;
  const fake = await FakeOpenSearch.start(t, ({ path }) => {
    if (path === '/') return { body: VERSION_REPLY };
    return (response) => {
      closed = new Promise((resolve) => response.once('close', resolve));
      stop.abort();
    };
  });
  const client = await fake.client(t);
  const stop = new AbortController();
  await assert.rejects(client.search('i', {}, stop.signal), trawlError('CANCELLED'));
  await closed;
});

test('a search that is cancelled in the pause before its next attempt ends at once', async (t) => {
  const fake = await FakeOpenSearch.start(t, ({ path }) =>
    path === '/' ? { body: VERSION_REPLY } : { status: 503, body: {} },
  );
  const client = await fake.client(t);
  const stop = new AbortController();
  const search = client.search('i', {}, stop.signal);
  // The pause after the third attempt is the longest; it begins once the client has read the reply.
  while (fake.count('/i/_msearch') < 3) await pause(10);
  await pause(100);
  stop.abort();
  await assert.rejects(Promise.race([search, nextIteration()]), trawlError('CANCELLED'));
  assert.equal(fake.count('/i/_msearch'), 3);
});

test('rows that OpenSearch does not store fail the call', async (t) => {
  const item = (status: number, error?: object) => ({ index: { status, error } });
  const fake = await FakeOpenSearch.start(t, ({ path }) => {
    if (path === '/') return { body: VERSION_REPLY };
    if (path === '/short/_bulk') return { body: { errors: false, items: [item(201)] } };
    const error = { type: 'strict_dynamic_mapping_exception', reason: 'not allowed' };
    return { body: { errors: true, items: [item(201), item(400, error)] } };
  });
  const client = await fake.client(t);
  const rows = [
    [0, {}],
    [1, {}],
  ] as const;
  await assert.rejects(client.store('short', 'index', rows), trawlError('STORE_FAILED', /reports 1 of 2 rows/));
  await assert.rejects(client.store('i', 'index', rows), trawlError('STORE_FAILED', /not allowed/));
  assert.equal(fake.count('/i/_bulk'), 1);
});

test('a missing row and a vector of another length never become zeros', async (t) => {
  const hit = { fields: { row: [3], vector: [Buffer.alloc(4).toString('base64')] } };
  const reply = searchReply({ hits: { total: { value: 1, relation: 'eq' }, hits: [hit] } });
  const fake = await FakeOpenSearch.start(t, answer({ i: { body: reply } }));
  const client = await fake.client(t);
  await assert.rejects(readRows(client, 'i', { rows: [3, 4] }), trawlError('STORE_FAILED', /did not return all of 2/));
  const source = openSearchCandidates(client, { index: 'i', dimension: 2, metric: 'l2' });
  await assert.rejects(source.vectors([3]), trawlError('STORE_DIFFERS', /row 3 has 4 bytes, expected 8/));
});

test('an index whose shards, fields, limits or rows differ from the publication is not opened', async (t) => {
  const replies = new Map<string, object>();
  const fake = await FakeOpenSearch.start(t, ({ path }) => {
    if (path === '/') return { body: VERSION_REPLY };
    if (path.startsWith('/_cluster/health')) return { body: replies.get('health') };
    return { body: { responses: [searchReply({ hits: { total: { value: 5, relation: 'eq' }, hits: [] } })] } };
  });
  const client = await fake.client(t);
  const publication = { indexType: SCRIPT_INDEX, manifest: { rows: 5, tombstones: null } } as unknown as Publication;
  const facts = {
    name: 'i',
    mappings: rowMappings() as unknown as { properties: Record<string, Record<string, unknown>> },
    settings: { max_result_window: '16385' },
  };
  const problemsOf = async (changes: object, published: object = {}, status = 'green'): Promise<string> => {
    replies.set('health', { status, active_shards: 1 });
    const found = { name: 'i', facts: { ...facts, ...changes }, publication: { ...publication, ...published } };
    return (await indexProblems(client, found as Parameters<typeof indexProblems>[1])).map(String).join('\n');
  };
  assert.equal(await problemsOf({}), '');
  assert.equal(await problemsOf({}, {}, 'yellow'), '');
  assert.match(await problemsOf({}, {}, 'red'), /lacks shards/);
  const vector = { type: 'knn_vector', dimension: 2 };
  assert.match(
    await problemsOf({ mappings: { properties: { ...rowMappings().properties, vector } } }),
    /the field vector as .*knn_vector/,
  );
  assert.match(await problemsOf({ mappings: {} }), /the field row as \{\}/);
  assert.match(await problemsOf({ settings: {} }), /up to 10000 hits/);
  assert.match(await problemsOf({}, { manifest: { rows: 6, tombstones: null } }), /5 rows, but 6 were published/);
});

test('rows that are stored as new ones and are there already stay, and other refusals fail', async (t) => {
  const statuses: Record<string, number[]> = { twice: [201, 409], refused: [201, 400] };
  const fake = await FakeOpenSearch.start(t, ({ path }) => {
    if (path === '/') return { body: VERSION_REPLY };
    const items = statuses[path.split('/')[1]!]!.map((status) => ({
      create: { status, error: { type: 'some_exception', reason: 'bad row' } },
    }));
    return { body: { items } };
  });
  const client = await fake.client(t);
  const rows = [
    [1, {}],
    [2, {}],
  ] as const;
  await client.store('twice', 'create', rows);
  assert.match(fake.requests.at(-1)!.body, /^\{"create":\{"_id":"1"\}\}\n/);
  await assert.rejects(client.store('refused', 'create', rows), trawlError('STORE_FAILED', /bad row/));
});

test('a count with a limit may end at the limit; another count that is not exact is refused', async (t) => {
  const total = { value: 31, relation: 'gte' };
  const fake = await FakeOpenSearch.start(t, answer({ i: { body: searchReply({ hits: { total, hits: [] } }) } }));
  const client = await fake.client(t);
  assert.equal((await client.search('i', { size: 0, track_total_hits: 31 })).total, 31);
  await assert.rejects(
    client.search('i', { size: 0, track_total_hits: 40 }),
    trawlError('STORE_FAILED', /no exact number/),
  );
});
