import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openCrossEncoder } from '../../../src/encoder/cross-encoder.ts';
import { ModelReranker } from '../../../src/encoder/rerank/model-reranker.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { importedCrossEncoder } from './tiny-cross-encoder.ts';

const LONG = 'The river rises in the mountains and reaches the sea after a long way. '.repeat(20);
const LISTS = [
  {
    query: 'Which river flows through Vienna?',
    passages: ['The Danube.', LONG, '', 'The Danube flows through Vienna.'],
  },
  { query: '', passages: ['The Danube.'] },
  { query: LONG, passages: [LONG, 'Short.'] },
  { query: 'no passages', passages: [] },
];

test('a list has the scores of its pairs, with the same bits alone and among other lists', async (t) => {
  const folder = await importedCrossEncoder(t);
  const model = await openCrossEncoder(folder, { workers: 1 });
  t.after(() => model.close());
  const reranker = await ModelReranker.open(folder, { workers: 2 });
  t.after(() => reranker.close());
  const { sha256, ...info } = reranker.info;
  assert.deepEqual(info, { name: 'tiny-reranker', maxTokens: 128 });
  assert.match(String(sha256), /^[0-9a-f]{64}$/);
  const { outcomes, waitedMs } = await reranker.score(LISTS);
  assert.ok(waitedMs >= 0);
  for (const [i, { query, passages }] of LISTS.entries()) {
    const outcome = outcomes[i]!;
    assert.ok(outcome.ok);
    const alone: number[] = [];
    for (const passage of passages) alone.push((await model.score(query, [passage])).scores[0]!);
    assert.deepEqual([...outcome.scores], alone);
  }
  const together = await Promise.all(LISTS.map((list) => reranker.score([list, ...LISTS])));
  for (const [i, other] of together.entries()) assert.deepEqual(other.outcomes[0], outcomes[i]);
});

test('the tokens of a list are counted, and its pairs over the token limit', async (t) => {
  const reranker = await ModelReranker.open(await importedCrossEncoder(t), { workers: 1 });
  t.after(() => reranker.close());
  const { outcomes } = await reranker.score(LISTS);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && [outcome.tokens! > 0, outcome.truncated]),
    [
      [true, 1],
      [true, 0],
      [true, 2],
      [false, 0],
    ],
  );
});

test('a query of up to half of the token limit stays whole: only the passage is truncated', async (t) => {
  const reranker = await ModelReranker.open(await importedCrossEncoder(t), { workers: 1 });
  t.after(() => reranker.close());
  const query = 'river '.repeat(62);
  const kept = 'sea '.repeat(63);
  const [whole, cut, longer] = (
    await reranker.score([
      { query, passages: [kept] },
      { query, passages: [`${kept} and more words that do not fit`] },
      { query: `${query} river`, passages: [kept] },
    ])
  ).outcomes;
  assert.ok(whole?.ok && cut?.ok && longer?.ok);
  assert.deepEqual([whole.truncated, cut.truncated, longer.truncated], [0, 1, 1]);
  assert.deepEqual(cut.scores, whole.scores);
});

test("raw scores are the model's output before its activation", async (t) => {
  const folder = await importedCrossEncoder(t);
  const reranker = await ModelReranker.open(folder, { workers: 1 });
  t.after(() => reranker.close());
  const [own] = (await reranker.score(LISTS)).outcomes;
  const [raw] = (await reranker.score(LISTS, { raw: true })).outcomes;
  assert.ok(own?.ok && raw?.ok);
  assert.deepEqual(own.scores, raw.scores, 'its activation is the identity');
});

test('an aborted call is cancelled; after closing, calls are refused', async (t) => {
  const reranker = await ModelReranker.open(await importedCrossEncoder(t), { workers: 1 });
  const passages = Array.from({ length: 2_000 }, (_, i) => `${i} ${LONG}`);
  const aborted = new AbortController();
  const running = reranker.score([{ query: 'river', passages }], { signal: aborted.signal });
  aborted.abort();
  await assert.rejects(running, trawlError('CANCELLED'));
  await reranker.close();
  await assert.rejects(reranker.score(LISTS), trawlError('CANCELLED'));
});

test('an encoder is no reranker', async () => {
  await assert.rejects(
    ModelReranker.open('token-average-256'),
    trawlError('MODEL_INVALID', /is an encoder|cross-encoder/),
  );
});
