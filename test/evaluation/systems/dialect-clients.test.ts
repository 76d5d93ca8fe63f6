import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { askServer } from '../../../evaluation/systems/ask-server.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { Hit } from '../../../src/search/calls/query-outcome.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { buildApp } from '../../../src/server/app.ts';
import { listen } from '../../../src/server/connections/listen.ts';
import type { SearchDialect, ServerPassage } from '../../../src/server/dialects/dialect.ts';
import { NAMEABLE_DIALECTS, SEARCH_DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';

const QUERIES = ['who designed the Brooklyn Bridge', 'capital of Finland', 'Which river flows through Prague?'];
const K = 3;
const RERANKED = 1;

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
  retriever = await openRetriever(index, { encoderThreads: 1, reranker: new FakeReranker({ score: () => RERANKED }) });
});

after(async () => {
  for (const app of apps) {
    app.server.closeAllConnections();
    await app.close();
  }
  await retriever.close();
});

for (const dialect of SEARCH_DIALECTS) {
  const { name, client } = dialect;
  test(`the client of ${name} reads the passages that a server of this dialect finds`, async () => {
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
      dialect,
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
      // Elasticsearch's scores are of several fields, and others may come first: the best is the same.
      const [passages, hits] = isElasticsearch ? [found.slice(0, 1), outcome.hits.slice(0, 1)] : [found, outcome.hits];
      assert.deepEqual(
        passages.map((passage) => shownOf(dialect, passage)),
        hits.map((hit) => expectedOf(dialect, hit)),
      );
      if (isElasticsearch) continue;
      for (const [rank, { score }] of found.entries())
        if (score !== undefined) assert.ok(score === hits[rank]!.score || score === RERANKED, `${score}`);
    }
  });
}

/** What the dialect says that its hits have. */
function shownOf({ client: { hit } }: SearchDialect, { id, title, contents, text }: ServerPassage): unknown {
  if (hit.includes('id')) return hit.includes('excerpt') ? { id } : { id, text: text.trim() };
  return hit.includes('excerpt') ? { id, title } : { id, title, contents: plain(contents), text: text.trim() };
}

function expectedOf(dialect: SearchDialect, { document, score }: Hit): unknown {
  const fields = documentFields(document);
  const id = dialect.client.hit.includes('id') ? fields.id : undefined;
  return shownOf(dialect, { ...fields, id, score });
}

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
  for (const { name, client } of SEARCH_DIALECTS) {
    for (const reply of replies) {
      let lists: unknown;
      try {
        lists = client.lists(reply);
      } catch (error) {
        assert.match((error as Error).message, /^its reply has .+ in place of /, name);
        continue;
      }
      assert.ok(Array.isArray(lists), name);
    }
  }
});
