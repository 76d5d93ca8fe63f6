import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { articleIndex, elasticsearch, withoutWords } from '../server/elasticsearch/elasticsearch-server.ts';
import {
  NODE_CLIENTS,
  nodeClientFolder,
  PYTHON_CLIENTS,
  pythonClientFolder,
  runPythonClient,
  withoutClient,
} from './elasticsearch-clients.ts';

const KEY = 'a-key-of-24-characters-x';

/** The hit that both clients ask for with highlights and fields. */
const HIGHLIGHTED = {
  _index: 'wiki_en',
  _id: '1',
  _score: 0.9066489,
  fields: { year: [1973] },
  highlight: { title: ['Paul <em>Walker</em>'] },
};

async function serve(t: TestContext): Promise<string> {
  const retriever = await articleIndex(
    t,
    [
      { id: '1', title: 'Paul Walker', text: 'An actor.', year: 1973 },
      { id: '2', title: 'Brooklyn Bridge', text: 'A bridge in New York. Walker.', year: 1883 },
      { id: '3', title: 'Wien', text: 'Eine Stadt.', year: 1919.5 },
    ],
    { columns: [{ name: 'year', type: 'number' }] },
  );
  const app = elasticsearch(t, retriever, { keys: AccessKeys.parse(`read:${KEY}`, 'keys') });
  t.after(() => app.server.closeAllConnections());
  return listen(app, { host: '127.0.0.1', port: 0 });
}

for (const version of PYTHON_CLIENTS) {
  test(`elasticsearch-py ${version} searches, counts and reads as ArtSearch does`, {
    skip: withoutClient(pythonClientFolder(version)) || withoutWords,
  }, async (t) => {
    assert.deepEqual(await runPythonClient(version, { url: await serve(t), key: KEY }), {
      version: Number(version.split('.')[0]),
      ping: true,
      number: '8.17.1',
      titles: ['Brooklyn Bridge', 'Paul Walker'],
      missing: { status: 404, error: 'index_not_found_exception' },
      unknown: { status: 400, error: 'parsing_exception' },
      sorted: [[1973], [1919.5]],
      highlighted: HIGHLIGHTED,
      vectorless: [],
      count: 1,
      exists: true,
      document: 'Paul Walker',
      mget: [true, false],
      msearch: [200],
      indices: ['wiki_en'],
      health: 'green',
    });
  });
}

/** The parts of @elastic/elasticsearch that the test uses. */
interface NodeClient {
  ping(): Promise<boolean>;
  search(
    request: object,
  ): Promise<{ hits: { hits: { _source: { title: string }; _score: number; sort?: number[] }[] } }>;
  count(request: object): Promise<{ count: number }>;
  close(): Promise<void>;
}

for (const version of NODE_CLIENTS) {
  test(`@elastic/elasticsearch ${version} searches and reports errors`, {
    skip: withoutClient(nodeClientFolder(version)) || withoutWords,
  }, async (t) => {
    const load = createRequire(join(nodeClientFolder(version), 'package.json'));
    const { Client } = load('@elastic/elasticsearch') as { Client: new (options: object) => NodeClient };
    const client = new Client({ node: await serve(t), auth: { username: 'elastic', password: KEY } });
    t.after(() => client.close());
    assert.equal(await client.ping(), true);
    const query = { multi_match: { query: 'walker bridge', fields: ['title', 'text'] } };
    const { hits } = await client.search({ index: 'wiki_en', query, size: 5 });
    assert.deepEqual(
      hits.hits.map(({ _source }) => _source.title),
      ['Brooklyn Bridge', 'Paul Walker'],
    );
    const range = { range: { year: { lt: 1950 } } };
    const sorted = await client.search({ index: 'wiki_en', query: range, sort: [{ year: 'asc' }] });
    assert.deepEqual(
      sorted.hits.hits.map(({ sort }) => sort),
      [[1883], [1919.5]],
    );
    const highlight = { fields: { title: { number_of_fragments: 0 } } };
    const shown = {
      index: 'wiki_en',
      query: { match: { title: 'walker' } },
      highlight,
      fields: ['year'],
      _source: false,
    };
    const highlighted = await client.search(shown);
    assert.deepEqual(highlighted.hits.hits[0], { ...HIGHLIGHTED, _score: highlighted.hits.hits[0]!._score });
    const knn = { field: 'vector', query_vector: [1], k: 1, num_candidates: 1 };
    assert.deepEqual((await client.search({ index: 'wiki_en', knn })).hits.hits, []);
    assert.equal((await client.count({ index: 'wiki_en' })).count, 3);
    await assert.rejects(client.search({ index: 'none' }), { name: 'ResponseError', statusCode: 404 });
    await assert.rejects(client.search({ index: 'wiki_en', query: { foo: {} } }), /unknown query \[foo\]/);
  });
}
