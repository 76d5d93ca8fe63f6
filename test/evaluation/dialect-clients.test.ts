import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { askServer } from '../../evaluation/server/ask-server.ts';
import type { ServerPassage } from '../../evaluation/server/dialect-client.ts';
import { DIALECT_CLIENTS } from '../../evaluation/server/dialect-clients.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { DIALECTS, NAMEABLE_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { FakeReranker } from '../helpers/fake-reranker.ts';

/** Dialects without a search: they embed, score, rerank given texts, or open documents. */
const WITHOUT_SEARCH = [
  'foldagent-open',
  'openresearcher-content',
  'asearcher-access',
  'openai-embeddings',
  'native-passages',
  'native-score',
  'search-r1-reranker',
  'tei-rerank',
  'infinity-rerank',
  'rerank',
  'sglang-rerank',
  'rerank-v1',
  'rerank-v2',
];
/** What a dialect returns of a passage. All others return ids. */
const TEXTS_ONLY = [
  'ultrarag',
  'massive-serve',
  'ds-serve',
  'searchagent-x',
  'search-r1-rerank-text',
  'stepsearch-rerank',
  'verl-tool',
  'verl-tool-question',
];
const TITLES_ONLY = ['serper', 'openresearcher'];

const QUERIES = ['who designed the Brooklyn Bridge', 'capital of Finland', 'Which river flows through Prague?'];
const K = 3;

const folder = await fileFolder();
const apps: ReturnType<typeof buildApp>[] = [];
let retriever: OpenRetriever;

before(async () => {
  const index = join(folder, 'sample');
  const built = await runTrawl([
    'index',
    SAMPLE_PASSAGES,
    '--out',
    index,
    '--model',
    'token-average-256',
    '--bm25',
    '--quiet',
  ]);
  assert.equal(built.code, 0, built.stderr);
  // All scores are equal, so that the order stays that of the search.
  retriever = await openRetriever(index, { encoderThreads: 1, reranker: new FakeReranker({ score: () => 1 }) });
});

after(async () => {
  for (const app of apps) {
    app.server.closeAllConnections();
    await app.close();
  }
  await retriever.close();
});

test('every dialect that searches has a client', () => {
  const clients = DIALECT_CLIENTS.map(({ name }) => name);
  assert.equal(new Set(clients).size, clients.length);
  assert.deepEqual(
    clients.toSorted(),
    DIALECTS.map(({ name }) => name)
      .filter((name) => !WITHOUT_SEARCH.includes(name))
      .toSorted(),
  );
});

for (const client of DIALECT_CLIENTS) {
  test(`the client of ${client.name} reads the passages that a server of this dialect finds`, async () => {
    const { name } = client;
    const app = buildApp(retriever, { dialects: NAMEABLE_DIALECTS.includes(name) ? [name] : [] });
    apps.push(app);
    const url = await listen(app, { host: '127.0.0.1', port: 0 });
    const isElasticsearch = name === 'elasticsearch';
    const { outcomes } = await retriever.retrieve({
      queries: QUERIES,
      k: K,
      mode: isElasticsearch ? 'bm25' : 'dense',
    });
    const answers = await askServer(
      client,
      isElasticsearch ? `${url}/${retriever.info.index}` : url,
      QUERIES.map((text, i) => ({ id: `q${i}`, text })),
      { k: K, concurrency: 2, queriesPerRequest: 2 },
    );
    assert.deepEqual([...answers.failed], []);
    assert.equal(answers.requests, client.batch ? 2 : 3);
    for (const [i, outcome] of outcomes.entries()) {
      assert.ok(outcome.ok);
      const found = answers.lists.get(`q${i}`)!;
      assert.equal(found.length, K);
      // Elasticsearch may find others, and excerpts are shorter.
      if (!isElasticsearch && client.excerpts === undefined)
        assert.deepEqual(
          found.map(({ text }) => text.trim()),
          outcome.hits.map(({ document }) => documentFields(document).text.trim()),
        );
      if (!isElasticsearch) assert.deepEqual(found.map(shownBy(name)), outcome.hits.map(expectedOf(name)));
      // Elasticsearch's scores are of several fields, and others may come first: the best is the same.
      else assert.deepEqual([found[0]!.id, found[0]!.title], [idOf(outcome.hits[0]!), titleOf(outcome.hits[0]!)]);
    }
  });
}

function shownBy(name: string) {
  return ({ id, title, contents }: ServerPassage): unknown => {
    if (TITLES_ONLY.includes(name)) return { id, title };
    return TEXTS_ONLY.includes(name) ? { id, title, contents: plain(contents) } : { id };
  };
}

function expectedOf(name: string) {
  return (hit: Hit): unknown => {
    const title = titleOf(hit);
    if (TITLES_ONLY.includes(name)) return { id: undefined, title };
    if (!TEXTS_ONLY.includes(name)) return { id: idOf(hit) };
    return { id: undefined, title, contents: plain(documentFields(hit.document).contents) };
  };
}

const idOf = ({ document }: Hit): string | undefined => documentFields(document).id;
const titleOf = ({ document }: Hit): string | undefined => documentFields(document).title;
/** Quotation marks around a title differ. */
const plain = (text: string): string => text.replaceAll('"', '').trim();

test('of any reply the client takes lists of passages, or says what is wrong', () => {
  const replies: readonly unknown[] = [
    null,
    1,
    'text',
    [],
    {},
    [[]],
    { result: 1 },
    { results: [1] },
    { result: [[1]] },
  ];
  for (const client of DIALECT_CLIENTS) {
    for (const reply of replies) {
      let lists: unknown;
      try {
        lists = client.lists(reply);
      } catch (error) {
        assert.match((error as Error).message, /^its reply has .+ in place of /, client.name);
        continue;
      }
      assert.ok(Array.isArray(lists), client.name);
    }
  }
});
