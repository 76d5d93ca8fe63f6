import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openRetriever } from '../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../src/search/retriever.ts';
import { buildApp } from '../src/server/app.ts';
import { listen } from '../src/server/connections/listen.ts';
import { fileFolder, postJson, SAMPLE } from './cli/run-trawl.ts';
import { buildSampleIndex } from './helpers/sample-index.ts';

interface SampleQuestion {
  readonly id: string;
  readonly question: string;
  readonly query?: string;
  readonly gold_ids: readonly string[];
}

interface Document {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

interface Scored {
  readonly result: readonly (readonly { readonly document: Document; readonly score: number }[])[];
}

interface Plain {
  readonly result: readonly (readonly Document[])[];
}

function jsonLines<T>(name: string): T[] {
  return readFileSync(join(SAMPLE, name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

const passages = jsonLines<Document>('passages.jsonl');
const questions = jsonLines<SampleQuestion>('questions.jsonl');
const subQueries = jsonLines<SampleQuestion>('sub-queries.jsonl');

const folder = await fileFolder();
let url: string;
let port: number;
let retriever: OpenRetriever;
let app: ReturnType<typeof buildApp>;

before(async () => {
  retriever = await openRetriever(await buildSampleIndex(folder), { encoderThreads: 1 });
  app = buildApp(retriever);
  url = await listen(app, { host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
});

after(async () => {
  app.server.closeAllConnections();
  await app.close();
  await retriever.close();
});

test('the first hit of four sample questions is their passage', async () => {
  // These questions name their subject, so even a weak encoder ranks its passage first.
  const expected = {
    'designer of the Brooklyn Bridge': 'Brooklyn Bridge',
    'the longest river of the Czech Republic': 'Vltava',
    'national epic of Finland compiled by Elias Lönnrot': 'Kalevala',
    'hard-paste porcelain factory in the Albrechtsburg castle': 'Meissen porcelain',
  };
  const { status, body } = await postJson<Scored>(url, {
    queries: Object.keys(expected),
    topk: 3,
    return_scores: true,
  });
  assert.equal(status, 200);
  assert.deepEqual(
    body.result.map(([first]) => first!.document.title),
    Object.values(expected),
  );
  for (const hits of body.result) {
    assert.equal(hits.length, 3);
    for (const { document } of hits) {
      const { title, text, ...rest } = passages.find(({ id }) => id === document.id)!;
      assert.deepEqual(document, { ...rest, title, text, contents: `"${title}"\n${text}` });
    }
    const scores = hits.map(({ score }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
  }
});

test('at least 90 % of the sample questions have a relevant passage among the first five hits', async () => {
  const { body } = await postJson<Plain>(url, { queries: questions.map(({ question }) => question), topk: 5 });
  const found = questions.filter(({ gold_ids }, i) => body.result[i]!.some(({ id }) => gold_ids.includes(id)));
  assert.ok(found.length >= 0.9 * questions.length, `${found.length} of ${questions.length}`);
});

test('without return_scores the reply has the same passages without scores', async () => {
  const queries = questions.slice(0, 20).map(({ question }) => question);
  const scored = await postJson<Scored>(url, { queries, topk: 4, return_scores: true });
  const plain = await postJson<Plain>(url, { queries, topk: 4, return_scores: false });
  assert.deepEqual(
    plain.body.result,
    scored.body.result.map((hits) => hits.map(({ document }) => document)),
  );
  assert.deepEqual((await postJson<Plain>(url, { queries, topk: 4 })).body, plain.body);
});

test('a question given beside a query has the same result as "question [SEP] query"', async () => {
  const pairs = subQueries.slice(0, 40);
  const rest = { topk: 5, return_scores: true };
  const apart = { queries: pairs.map(({ query }) => query), questions: pairs.map(({ question }) => question), ...rest };
  const composed = { queries: pairs.map(({ question, query }) => `${question} [SEP] ${query}`), ...rest };
  const alone = { queries: pairs.map(({ query }) => query), ...rest };
  const [first, second, third] = await Promise.all([apart, composed, alone].map((body) => postJson<Scored>(url, body)));
  assert.deepEqual(first!.body, second!.body);
  assert.notDeepEqual(first!.body, third!.body);
});

test('a query has the same scores alone and in a batch', async () => {
  const queries = questions.slice(0, 30).map(({ question }) => question);
  const together = await postJson<Scored>(url, { queries, topk: 3, return_scores: true });
  for (const i of [0, 7, 29]) {
    const alone = await postJson<Scored>(url, { queries: [queries[i]], topk: 3, return_scores: true });
    assert.deepEqual(alone.body.result[0], together.body.result[i]);
  }
});

test('10,000 queries in one request are answered in order, and the server answers other requests meanwhile', async () => {
  const queries = Array.from({ length: 10_000 }, (_, i) => `${questions[i % questions.length]!.question} (${i})`);
  let done = false;
  const big = postJson<Plain>(url, { queries, topk: 3 }).finally(() => (done = true));
  let answeredMeanwhile = 0;
  while (!done) {
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    if (!done) answeredMeanwhile++;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { status, body } = await big;
  assert.equal(status, 200);
  assert.equal(body.result.length, 10_000);
  assert.ok(body.result.every((hits) => hits.length === 3));
  for (const i of [0, 4_999, 9_999]) {
    const alone = await postJson<Plain>(url, { queries: [queries[i]], topk: 3 });
    assert.deepEqual(alone.body.result[0], body.result[i]);
  }
  assert.ok(answeredMeanwhile >= 5, `${answeredMeanwhile} answers meanwhile`);
});

test('the server answers other requests after a client disconnects from a running one', async () => {
  const controller = new AbortController();
  const queries = Array.from({ length: 5_000 }, (_, i) => `abandoned query ${i}`);
  const gone = fetch(`http://127.0.0.1:${port}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queries }),
    signal: controller.signal,
  });
  // The server has read the request, but has not answered it.
  app.server.once('request', (request) => request.once('end', () => controller.abort()));
  await assert.rejects(gone);
  assert.equal((await postJson(url, { queries: ['a river'] })).status, 200);
});
