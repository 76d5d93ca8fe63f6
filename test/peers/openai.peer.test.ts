import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PEERS } from '../helpers/peers.ts';
import { serve } from '../server/build.ts';

interface Embedded {
  readonly vectors: number[][];
  readonly indexes: number[];
  readonly model: string;
  readonly tokens: number;
}

interface Answers {
  readonly default: Embedded;
  readonly float: Embedded;
  readonly single: Embedded;
  readonly passage: Embedded;
  readonly tokens: object;
  readonly unknown: object;
  readonly dimensions: object;
}

test('the official Python client gets vectors and its own errors', { skip: PEERS.missing() }, async (t) => {
  const { url } = await serve(t);
  const texts = ['one', 'two 💧', ''];
  const answers = (await PEERS.run('openai_embed.py', { url, model: 'fake-encoder', texts })) as Answers;
  const vectorOf = (inputType: string, text: string): number[] => {
    const input = `${inputType}: ${text}`;
    return [input.length, input.charCodeAt(0), input.charCodeAt(1), input.charCodeAt(2)];
  };
  assert.deepEqual(
    answers.default.vectors,
    texts.map((text) => vectorOf('query', text)),
  );
  assert.deepEqual(answers.float, answers.default);
  assert.deepEqual(answers.default.indexes, [0, 1, 2]);
  assert.deepEqual(answers.single.vectors, [vectorOf('query', 'one')]);
  assert.deepEqual(answers.passage.vectors, [vectorOf('passage', 'one')]);
  assert.deepEqual(answers.tokens, { type: 'BadRequestError', code: 'INVALID_REQUEST', param: 'input' });
  assert.deepEqual(answers.unknown, { type: 'NotFoundError', code: 'model_not_found', param: 'model' });
  assert.deepEqual(answers.dimensions, { type: 'BadRequestError', code: 'INVALID_REQUEST', param: 'dimensions' });
});
