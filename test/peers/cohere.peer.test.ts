import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { CLIENTS } from '../helpers/peers.ts';
import { serve } from '../server/build.ts';

interface Answers {
  readonly v1: [index: number, score: number][];
  readonly v1_first: [index: number, score: number][];
  readonly v1_texts: string[];
  readonly v1_fields: [index: number, score: number][];
  readonly v2: [index: number, score: number][];
  readonly v2_first: [index: number, score: number][];
  readonly dr_tulu: [index: number, text: string][];
  readonly wrong: number;
}

test('Cohere’s official client ranks documents by both versions of its API', { skip: CLIENTS.missing() }, async (t) => {
  const retriever = new FakeRetriever();
  const { url } = await serve(t, retriever);
  const documents = ['a', 'longest', 'long', 'naïve 💧'];
  const answers = (await CLIENTS.run('cohere_rerank.py', { url, query: 'q', documents })) as Answers;
  const { outcomes } = await retriever.rerank({ lists: [{ query: 'q', passages: documents }] });
  const [outcome] = outcomes;
  assert.ok(outcome?.ok);
  const scores = [...outcome.scores];
  const expected = scores.map((score, index) => [index, score] as const).sort(([a, x], [b, y]) => y - x || a - b);
  assert.deepEqual(answers.v1, expected);
  assert.deepEqual(answers.v2, expected);
  assert.deepEqual([answers.v1_first, answers.v2_first], [expected.slice(0, 1), expected.slice(0, 1)]);
  assert.deepEqual(
    answers.v1_texts,
    expected.map(([index]) => documents[index]),
  );
  assert.deepEqual(answers.v1_fields, [
    [1, 6],
    [0, 3],
  ]);
  assert.deepEqual(
    answers.dr_tulu,
    expected.slice(0, 2).map(([index]) => [index, documents[index]]),
  );
  assert.equal(answers.wrong, 422);
});
