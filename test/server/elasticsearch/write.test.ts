import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passingRetriever } from '../../../src/search/layers/passing-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { opened } from '../../helpers/opened.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { eventually } from '../build.ts';
import { ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';
import { idsOf, MANUAL, ndjson, succeeded, writableServer } from './writable-server.ts';

const skip = withoutWords;
const ALL = { match_all: {} };

test("an index is made, filled, refreshed and searched, as ArtSearch's build script does it", { skip }, async (t) => {
  const { app } = await writableServer(t, { inChild: true });
  assert.equal((await ask(app, 'HEAD', '/wiki_en')).status, 404);
  assert.equal((await ask(app, 'DELETE', '/wiki_en?ignore_unavailable=true')).status, 200);
  assert.deepEqual((await ask(app, 'PUT', '/wiki_en')).json, {
    acknowledged: true,
    shards_acknowledged: true,
    index: 'wiki_en',
  });
  assert.equal((await ask(app, 'HEAD', '/wiki_en')).status, 200);
  const articles = [
    {
      id: '12',
      url: 'https://a',
      title: 'Brooklyn Bridge',
      text: 'A bridge in New York.\nIt was designed by Roebling.',
    },
    { id: '39', url: 'https://b', title: 'Vienna', text: 'The capital of Austria.' },
  ];
  const bulk = await ask(
    app,
    'POST',
    '/_bulk',
    ndjson(...articles.flatMap((each) => [{ index: { _index: 'wiki_en' } }, each])),
    {
      'content-type': 'application/vnd.elasticsearch+x-ndjson; compatible-with=8',
      accept: 'application/vnd.elasticsearch+json; compatible-with=8',
    },
  );
  assert.equal(bulk.status, 200, bulk.text);
  assert.equal(bulk.json.errors, false);
  const [first] = bulk.json.items as unknown as { index: Json }[];
  const id = String(first!.index._id);
  assert.match(id, /^[\w-]{20}$/);
  assert.deepEqual(first!.index, {
    _index: 'wiki_en',
    _id: id,
    _version: 1,
    result: 'created',
    _shards: { total: 2, successful: 1, failed: 0 },
    _seq_no: 0,
    _primary_term: 1,
    status: 201,
  });
  // No request refreshes: the server does it, as Elasticsearch.
  const count = async (): Promise<unknown> => (await ask(app, 'POST', '/wiki_en/_count')).json.count;
  while ((await count()) !== 2) await new Promise((resolve) => setTimeout(resolve, 20));
  const query = { multi_match: { query: 'who designed the Brooklyn bridge', fields: ['title', 'text'] } };
  const found = await ask(app, 'POST', '/wiki_en/_search', { query, size: 1 });
  assert.deepEqual([found.json.hits!.hits![0]!._id, found.json.hits!.hits![0]!._source], [id, articles[0]]);
});

test('searches find what was written before the last refresh, and _doc what is written now', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'one' }));
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'one' } }), ['1']);
  const changed = await ask(app, 'PUT', '/ix/_doc/1', { text: 'two', n: 12345678901234567890n.toString() });
  assert.deepEqual([changed.status, changed.json.result, changed.json._version], [200, 'updated', 2]);
  succeeded(await ask(app, 'POST', '/ix/_doc/2', { text: 'two' }));
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'two' } }), []);
  const now = await ask(app, 'GET', '/ix/_doc/1');
  assert.deepEqual([now.json._version, now.json._seq_no, now.json._source!.text], [2, 1, 'two']);
  const both = await ask(app, 'POST', '/ix/_mget', { ids: ['2', '3'] });
  assert.deepEqual([both.json.docs![0]!.found, both.json.docs![1]!.found], [true, false]);
  assert.deepEqual((await ask(app, 'POST', '/ix/_refresh')).json, { _shards: { total: 2, successful: 1, failed: 0 } });
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'two' } }), ['1', '2']);
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'one' } }), []);
});

test('an id stays the id of its document whatever the document calls its own', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  const documents = { a: { id: 7, text: 'x' }, b: { text: 'x', contents: 'y\nz' }, 'c"\\/ü': {}, '7': { title: 'x' } };
  for (const [id, document] of Object.entries(documents)) {
    succeeded(await ask(app, 'PUT', `/ix/_doc/${encodeURIComponent(id)}`, document));
  }
  succeeded(await ask(app, 'GET', '/ix/_refresh'));
  const { hits } = (await ask(app, 'POST', '/ix/_search', { query: ALL })).json.hits! as unknown as {
    hits: { _id: string; _source: object }[];
  };
  assert.deepEqual(Object.fromEntries(hits.map(({ _id, _source }) => [_id, _source])), documents);
  assert.deepEqual(await idsOf(app, 'ix', { ids: { values: ['7', 'c"\\/ü'] } }), ['7', 'c"\\/ü']);
  assert.deepEqual(await idsOf(app, 'ix', { term: { _id: 'a' } }), ['a']);
  const { json } = await ask(app, 'POST', '/ix/_search?_source=title', { query: { ids: { values: ['7'] } } });
  assert.deepEqual(json.hits!.hits![0]!._source, { title: 'x' });
});

test('a hit has only the fields that its document has', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'without a title' }));
  const { json } = await ask(app, 'POST', '/ix/_search', { query: ALL, fields: ['title', 'text'], _source: false });
  const [hit] = json.hits!.hits as unknown as { fields: object }[];
  assert.deepEqual(hit!.fields, { text: ['without a title'] });
});

test('operations of a bulk are done in order, and fail for themselves', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', { ...MANUAL, mappings: { properties: { year: { type: 'long' } } } }));
  const body = ndjson(
    { create: { _id: '1' } },
    { text: 'a' },
    { create: { _id: '1' } },
    { text: 'b' },
    { index: { _id: '2' } },
    { text: 'a', year: 'none' },
    { delete: { _id: '1' } },
    { delete: { _id: '1' } },
    { index: { _id: '1' } },
    { text: 'c', year: 1883 },
    { update: { _id: '1' } },
    { doc: { text: 'd' } },
    { index: { _id: '' } },
    { text: 'a' },
    { index: {} },
    { text: ['a', {}] },
    { index: {} },
    { _id: '1', text: 'a' },
    { delete: { _index: 'none', _id: '1' } },
    { index: { _index: 'No' } },
    { text: 'a' },
  );
  const { json, status } = await ask(app, 'POST', '/ix/_bulk', body);
  assert.deepEqual([status, json.errors], [200, true]);
  const items = (json.items as unknown as Record<string, Json>[]).map((item) => {
    const [[action, each]] = Object.entries(item) as [[string, Json]];
    return [action, each.status, each.result ?? each.error!.type, each._version ?? String(each.error!.reason)];
  });
  const reasons = items.splice(9).map(([, status_, type, reason]) => [status_, type, reason]);
  const [conflict, wrongYear, update] = [items[1]!, items[2]!, items[6]!].map((item) => String(item.pop()));
  assert.deepEqual(items, [
    ['create', 201, 'created', 1],
    ['create', 409, 'version_conflict_engine_exception'],
    ['index', 400, 'document_parsing_exception'],
    ['delete', 200, 'deleted', 2],
    ['delete', 404, 'not_found', 3],
    ['index', 201, 'created', 4],
    ['update', 400, 'illegal_argument_exception'],
    ['index', 400, 'illegal_argument_exception', 'if _id is specified it must not be empty'],
    [
      'index',
      400,
      'document_parsing_exception',
      '[1:1] failed to parse: field [text] must be a string or a list of strings, but has an object. Send it as a string',
    ],
  ]);
  assert.match(conflict!, /^\[1\]: version conflict, document already exists \(current version \[1\]\)$/);
  assert.match(wrongYear!, /field "year" is a number, but found the string "none"/);
  assert.match(update!, /\[update\] is not supported; index the whole document/);
  assert.deepEqual(
    reasons.map(([status_, type]) => [status_, type]),
    [
      [400, 'document_parsing_exception'],
      [404, 'index_not_found_exception'],
      [400, 'invalid_index_name_exception'],
    ],
  );
  assert.match(String(reasons[0]![2]), /Field \[_id\] is a metadata field/);
  assert.equal((await ask(app, 'GET', '/ix/_doc/1')).json._source!.text, 'c');
});

test('a bulk that is not in its form is refused as a whole, and nothing of it is done', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  for (const [body, type] of [
    ['{"index":{"_id":"1"}}\n{"text":"a"}\nfoo\n', 'illegal_argument_exception'],
    ['{"index":{"_id":"1"}}\n{"text":"a"}\n{"index":{"_id":"2"}}\n', 'illegal_argument_exception'],
    ['{"index":{"_id":"1"}}\n{"text":"a"}', 'illegal_argument_exception'],
    ['', 'parse_exception'],
    ['{"index":{"_id":"1"}}\n{"text":"a"}\n{"delete":{}}\n', 'action_request_validation_exception'],
    [
      `{"index":{"_id":"1"}}\n{"text":"a"}\n{"delete":{"_id":"${'x'.repeat(513)}"}}\n`,
      'action_request_validation_exception',
    ],
  ] as const) {
    const { status, json } = await ask(app, 'POST', '/ix/_bulk', body);
    assert.deepEqual([status, json.error!.type], [400, type], body);
  }
  const { json } = await ask(app, 'POST', '/_bulk', '{"index":{}}\n{}\n');
  assert.equal(json.error!.type, 'action_request_validation_exception');
  assert.equal((await ask(app, 'GET', '/ix/_doc/1')).status, 404);
});

test('the parameters of a write are checked', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  const wrong = ['refresh=maybe', 'pipeline=x', 'routing=a', 'if_seq_no=1', 'require_alias=true', 'foo=1', 'op_type=x'];
  for (const parameter of wrong) {
    const { status, json } = await ask(app, 'PUT', `/ix/_doc/1?${parameter}`, { text: 'a' });
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception'], parameter);
  }
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?timeout=1m&require_alias=false&pipeline=_none', { text: 'a' }));
  const again = await ask(app, 'PUT', '/ix/_doc/1?op_type=create', { text: 'a' });
  assert.deepEqual([again.status, again.json.error!.index], [409, 'ix']);
  assert.equal((await ask(app, 'POST', '/ix/_create/1', { text: 'a' })).status, 409);
  assert.equal((await ask(app, 'PUT', '/ix/_create/2', { text: 'a' })).status, 201);
  const forced = await ask(app, 'POST', '/ix/_doc?refresh', { text: 'a' });
  assert.deepEqual([forced.status, forced.json.forced_refresh], [201, true]);
  const waited = await ask(app, 'DELETE', '/ix/_doc/2?refresh=wait_for');
  assert.deepEqual([waited.status, waited.json.result, waited.json.forced_refresh], [200, 'deleted', undefined]);
  assert.equal((await idsOf(app, 'ix', ALL)).length, 2);
  assert.equal((await ask(app, 'DELETE', '/ix/_doc/2')).status, 404);
  assert.equal((await ask(app, 'PUT', '/ix/_doc/3')).json.error!.type, 'parse_exception');
  for (const body of ['{', '[]', '"a"', 'null']) {
    const { status, json } = await ask(app, 'PUT', '/ix/_doc/3', body);
    assert.deepEqual([status, json.error!.type], [400, 'document_parsing_exception'], body);
  }
  for (const route of ['_update/1', '_delete_by_query', '_update_by_query']) {
    const { status, json } = await ask(app, 'POST', `/ix/${route}`, {});
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception'], route);
    assert.match(String(json.error!.reason), /not supported\. Send whole documents, and delete documents by their ids/);
  }
});

test('a write to an index that does not exist makes it, once', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const writes = await Promise.all(
    ['1', '2', '3'].map((id) => ask(app, 'PUT', `/new-1/_doc/${id}`, { title: 'T', text: `text ${id}` })),
  );
  assert.deepEqual(
    writes.map(({ status }) => status),
    [201, 201, 201],
  );
  succeeded(await ask(app, 'POST', '/_refresh'));
  assert.equal((await idsOf(app, 'new-1', { match: { title: 't' } })).length, 3);
  for (const name of ['No', '_no', '-no', '.no', 'a b', 'a:b', 'é', 'x'.repeat(65)]) {
    const { status, json } = await ask(app, 'PUT', `/${encodeURIComponent(name)}/_doc/1`, { text: 'a' });
    assert.deepEqual([status, json.error!.type], [400, 'invalid_index_name_exception'], name);
  }
  assert.equal((await ask(app, 'DELETE', '/none/_doc/1')).json.error!.type, 'index_not_found_exception');
  assert.equal((await ask(app, 'HEAD', '/none')).status, 404);
});

test('an index is removed while it is searched, and its name can be used again', { skip }, async (t) => {
  let began: (() => void) | undefined;
  let go: (() => void) | undefined;
  const searching = new Promise<void>((resolve) => (began = resolve));
  const mayContinue = new Promise<void>((resolve) => (go = resolve));
  const { app, holder } = await writableServer(t, {
    wrap: (retriever) =>
      withSearch(retriever, async (call) => {
        if (call.size === 7) {
          began?.();
          await mayContinue;
        }
        return retriever.searchTree(call);
      }),
  });
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'old' }));
  const search = ask(app, 'POST', '/ix/_search', { query: { match: { text: 'old' } }, size: 7 });
  await searching;
  assert.deepEqual((await ask(app, 'DELETE', '/ix')).json, { acknowledged: true });
  assert.equal((await ask(app, 'POST', '/ix/_search', {})).json.error!.type, 'index_not_found_exception');
  assert.equal((await ask(app, 'GET', '/ix/_doc/1')).status, 404);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  assert.deepEqual(await idsOf(app, 'ix', ALL), []);
  go!();
  const { json } = await search;
  assert.equal(json.hits!.hits![0]!._id, '1');
  await eventually(() => holder.slots.every(({ draining }) => draining === 0));
  for (const [path, status] of [
    ['/none', 404],
    ['/_all', 400],
    ['/*', 400],
    ['/i*', 400],
  ] as const) {
    assert.equal((await ask(app, 'DELETE', path)).status, status, path);
  }
});

/** The retriever with another search. */
function withSearch(retriever: OpenRetriever, searchTree: OpenRetriever['searchTree']): OpenRetriever {
  return opened(
    passingRetriever(retriever, (call) => call, { searchTree }),
    retriever,
  );
}

test('without --writable, every write is refused and names the option', async (t) => {
  const app = elasticsearch(t, new FakeRetriever());
  for (const [method, path, body] of [
    ['PUT', '/ix', undefined],
    ['DELETE', '/ix', undefined],
    ['POST', '/_bulk', '{"index":{"_index":"ix"}}\n{}\n'],
    ['PUT', '/ix/_doc/1', { text: 'a' }],
    ['POST', '/ix/_doc', { text: 'a' }],
    ['PUT', '/ix/_create/1', { text: 'a' }],
    ['DELETE', '/ix/_doc/1', undefined],
    ['POST', '/ix/_refresh', undefined],
    ['PUT', '/ix/_settings', {}],
    ['PUT', '/ix/_mapping', {}],
  ] as const) {
    const { status, json } = await ask(app, method, path, body);
    assert.deepEqual([status, json.error!.type], [403, 'cluster_block_exception'], path);
    assert.match(String(json.error!.reason), /start the server with --writable FOLDER/);
  }
});

test('with keys, writing needs one, and a page of another site cannot write', { skip }, async (t) => {
  const key = 'a-key-of-24-characters-x';
  const { app } = await writableServer(t, { config: { keys: AccessKeys.parse(`read:${key}`, 'keys') } });
  assert.equal((await ask(app, 'PUT', '/ix')).status, 401);
  assert.equal((await ask(app, 'POST', '/_bulk', '{}\n')).status, 401);
  const authorization = `Basic ${Buffer.from(`elastic:${key}`).toString('base64')}`;
  assert.equal((await ask(app, 'PUT', '/ix', MANUAL, { authorization })).status, 200);
  // A browser sends these without asking the server first.
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', '']) {
    const reply = await app.inject({
      method: 'POST',
      url: '/ix/_bulk',
      headers: { authorization, ...(type === '' ? {} : { 'content-type': type }) },
      payload: Buffer.from('{"index":{}}\n{"text":"a"}\n'),
    });
    assert.equal(reply.statusCode, 406, type);
  }
});

test('a key that is bound to a view cannot write, nor read what the view does not have', { skip }, async (t) => {
  const [key, bound] = ['a-key-of-24-characters-x', 'another-key-of-26-characters'];
  const keys = AccessKeys.parse(`read:${key}\nread:${bound} view=train`, 'keys');
  const { app } = await writableServer(t, { config: { keys } });
  const [free, limited] = [key, bound].map((each) => ({ authorization: `Bearer ${each}` }));
  succeeded(await ask(app, 'PUT', '/ix', MANUAL, free));
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'a' }, free));
  for (const [method, path] of [
    ['PUT', '/ix/_doc/1'],
    ['POST', '/ix/_bulk'],
    ['DELETE', '/ix'],
    ['PUT', '/other'],
  ] as const) {
    const { status, json } = await ask(app, method, path, {}, limited);
    assert.deepEqual([status, json.error!.type], [403, 'security_exception'], path);
  }
  // The index does not have the view.
  assert.equal((await ask(app, 'GET', '/ix/_doc/1', undefined, limited)).json._source, undefined);
  assert.equal((await ask(app, 'GET', '/ix/_doc/1', undefined, free)).json._version, 1);
});

test('a body beyond the limit is refused, and nothing of it is stored', { skip }, async (t) => {
  const { app } = await writableServer(t, { config: { maxBodyBytes: 1_000 } });
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  const { status, json } = await ask(
    app,
    'POST',
    '/ix/_bulk',
    ndjson({ index: { _id: '1' } }, { text: 'x'.repeat(2_000) }),
  );
  assert.deepEqual([status, json.error!.type], [413, 'content_too_long_exception']);
  assert.equal((await ask(app, 'GET', '/ix/_doc/1')).status, 404);
});

test('many small refreshes give the same index as one', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/many', MANUAL));
  succeeded(await ask(app, 'PUT', '/one', MANUAL));
  const words = ['bridge', 'river', 'tower', 'bridge tower', 'river river'];
  const texts = Array.from({ length: 12 }, (_, i) => ({ title: `T${i}`, text: words[i % 5]! }));
  const first = texts.flatMap((each, i) => [{ index: { _id: String(i) } }, each]);
  // One is new, one is changed, one is removed in each refresh.
  const steps = [0, 1, 2].map((i) => [
    { index: { _id: `new ${i}` } },
    { title: 'New', text: 'a new bridge' },
    { index: { _id: String(i) } },
    { title: 'Changed', text: 'tower and river' },
    { delete: { _id: String(i + 6) } },
  ]);
  succeeded(await ask(app, 'POST', '/many/_bulk?refresh=true', ndjson(...first)));
  for (const step of steps) succeeded(await ask(app, 'POST', '/many/_bulk?refresh=true', ndjson(...step)));
  succeeded(await ask(app, 'POST', '/one/_bulk?refresh=true', ndjson(...first, ...steps.flat())));
  const found = async (index: string): Promise<unknown> => {
    const query = { multi_match: { query: 'new bridge river tower', fields: ['title', 'text'] } };
    const { json } = succeeded(await ask(app, 'POST', `/${index}/_search`, { query, size: 100 }));
    return (json.hits!.hits as unknown as { _id: string; _score: number }[]).map(({ _id, _score }) => [_id, _score]);
  };
  assert.deepEqual(await found('many'), await found('one'));
  assert.equal((await idsOf(app, 'many', ALL)).length, 12);
});

test('clients that write, refresh and search at the same time find each document once, and at the end all', {
  skip,
}, async (t) => {
  const { app, failures } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', { settings: { refresh_interval: '10ms' } }));
  const random = seededRandom(11);
  const expected = new Map<string, string>();
  const write = async (client: number): Promise<void> => {
    for (let round = 0; round < 8; round++) {
      const lines: object[] = [];
      for (let i = 0; i < 10; i++) {
        const id = `${client}-${Math.floor(random() * 12)}`;
        if (random() < 0.3) {
          lines.push({ delete: { _id: id } });
          expected.delete(id);
        } else {
          const text = `round${round} place${i}`;
          lines.push({ index: { _id: id } }, { text });
          expected.set(id, text);
        }
      }
      const { json } = succeeded(await ask(app, 'POST', '/ix/_bulk', ndjson(...lines)));
      assert.equal(json.errors, false);
    }
  };
  let writing = true;
  const search = async (): Promise<void> => {
    while (writing) {
      const ids = await idsOf(app, 'ix', ALL);
      assert.equal(new Set(ids).size, ids.length);
      await ask(app, 'POST', '/ix/_refresh');
    }
  };
  const searches = [search(), search()];
  await Promise.all([0, 1, 2].map(write));
  writing = false;
  await Promise.all(searches);
  succeeded(await ask(app, 'POST', '/ix/_refresh'));
  const { json } = await ask(app, 'POST', '/ix/_search', { query: ALL, size: 100 });
  const hits = json.hits!.hits as unknown as { _id: string; _source: { text: string } }[];
  assert.deepEqual(new Map(hits.map(({ _id, _source }) => [_id, _source.text])), expected);
  assert.deepEqual(failures, []);
});

test('all documents can be removed', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', MANUAL));
  assert.deepEqual(await idsOf(app, 'ix', ALL), []);
  succeeded(
    await ask(app, 'POST', '/ix/_bulk?refresh=true', ndjson({ index: { _id: '1' } }, {}, { index: { _id: '2' } }, {})),
  );
  assert.equal((await idsOf(app, 'ix', ALL)).length, 2);
  succeeded(
    await ask(app, 'POST', '/ix/_bulk?refresh=true', ndjson({ delete: { _id: '1' } }, { delete: { _id: '2' } })),
  );
  assert.deepEqual(await idsOf(app, 'ix', ALL), []);
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'again' }));
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'again' } }), ['1']);
});

test('the first searches after a fill wait for what was written', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/ix', { mappings: { properties: { body: { type: 'text' } } } }));
  succeeded(await ask(app, 'PUT', '/manual', { ...MANUAL, mappings: { properties: { body: { type: 'text' } } } }));
  for (const index of ['ix', 'manual']) {
    succeeded(await ask(app, 'POST', `/${index}/_bulk`, ndjson({ index: { _id: '1' } }, { body: 'bridge' })));
  }
  const query = { match: { body: 'bridge' } };
  const found = await Promise.all([idsOf(app, 'ix', query), idsOf(app, 'ix', query), idsOf(app, 'manual', query)]);
  assert.deepEqual(found, [['1'], ['1'], []]);
});
