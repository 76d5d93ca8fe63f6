import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENTS } from '../helpers/peers.ts';
import { serve } from '../server/build.ts';

interface Answers {
  readonly single: number[][];
  readonly list: number[][];
  readonly query: number[][];
  readonly embed: number[][];
  readonly prompt: [status: number, error: string];
  readonly dimensions: [status: number, error: string];
  readonly llama_query: number[];
  readonly llama_texts: number[][];
  readonly llama_async: number[];
}

test('huggingface_hub’s and LlamaIndex’s clients embed with their own prefixes, or with the model’s', {
  skip: CLIENTS.missing(),
}, async (t) => {
  const { url } = await serve(t);
  const texts = ['one', 'two 💧'];
  const answers = (await CLIENTS.run('tei_embed.py', { url, texts })) as Answers;
  const vectorOf = (text: string): number[] => [
    text.length,
    ...Array.from({ length: 3 }, (_, i) => text.charCodeAt(i)),
  ];
  assert.deepEqual(answers.single, [vectorOf('one')]);
  for (const vectors of [answers.list, answers.embed]) assert.deepEqual(vectors, texts.map(vectorOf));
  assert.deepEqual(
    answers.query,
    texts.map((text) => vectorOf(`query: ${text}`)),
  );
  assert.match(JSON.stringify(answers.prompt), /^\[422,".*'query' or 'passage' or 'document'/);
  assert.match(JSON.stringify(answers.dimensions), /^\[422,".*Expected 4/);
  assert.deepEqual(answers.llama_query, vectorOf('Represent this sentence for searching relevant passages:  one'));
  assert.deepEqual(
    answers.llama_texts,
    texts.map((text) => vectorOf(`passage: ${text}`)),
  );
  assert.deepEqual(answers.llama_async, vectorOf('passage: one'));
});
