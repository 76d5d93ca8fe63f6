import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AccessKeys } from '../../src/http/access/access-keys.ts';
import { listen } from '../../src/http/connections/listen.ts';
import { articleIndex, elasticsearch, withoutWords } from '../http/elasticsearch/elasticsearch-server.ts';
import {
  NODE_CLIENTS,
  nodeClientFolder,
  PYTHON_CLIENTS,
  pythonClientFolder,
  runPythonClient,
  withoutClient,
} from './elasticsearch-clients.ts';

const KEY = 'a-key-of-24-characters-x';

async function serve(t: TestContext): Promise<string> {
  const retriever = await articleIndex(t, [
    { id: '1', title: 'Paul Walker', text: 'An actor.' },
    { id: '2', title: 'Brooklyn Bridge', text: 'A bridge in New York. Walker.' },
  ]);
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
  search(request: object): Promise<{ hits: { hits: { _source: { title: string } }[] } }>;
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
    assert.equal((await client.count({ index: 'wiki_en' })).count, 2);
    await assert.rejects(client.search({ index: 'none' }), { name: 'ResponseError', statusCode: 404 });
    await assert.rejects(client.search({ index: 'wiki_en', query: { foo: {} } }), /unknown query \[foo\]/);
  });
}
