import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openCrossEncoder } from '../../../src/encoder/cross-encoder.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { qwen3 } from './reference-families.ts';
import { tableRow } from './reference-parts.ts';
import { HIDDEN, type TinyCheckpoint } from './tiny-checkpoint.ts';
import { ANSWERS, ROWS, rerankerTokenizer, tinyReranker } from './tiny-reranker.ts';

const PROMPT = `<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: Given a web search query, retrieve relevant passages that answer the query
`;
const END = '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';
const chatOf = (query: string, passage: string): string => `${PROMPT}<Query>: ${query}\n<Document>: ${passage}${END}`;

/** The ends of queries and the beginnings of passages meet punctuation, spaces and line breaks of the template. */
const PAIRS = [
  ['what is 42?', 'A number.'],
  ['who', 'x'],
  ['rivers ', '  two spaces, and the end is a line break\n'],
  ['a question\n', '\n\nlines'],
  ['', ''],
  ['(((', ')))'],
  ['什么是人工智能？', '人工智能。'],
] as const;

async function scoresOf(folder: string, pairs: readonly (readonly [string, string])[]): Promise<Float32Array> {
  const model = await openCrossEncoder(folder, { workers: 1 });
  try {
    const { scores } = await model.scorePairs(pairs.map(([query, passage]) => ({ query, passage })));
    return scores;
  } finally {
    await model.close();
  }
}

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** The scores of the model are those of the reference over the whole chat, tokenised at once. */
async function assertScores(
  { folder, tensors }: TinyCheckpoint,
  out: string,
  direction: readonly number[],
): Promise<void> {
  const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
  const scores = await scoresOf(out, PAIRS);
  for (const [i, [query, passage]] of PAIRS.entries()) {
    const ids = tokenizer.contentIds(chatOf(query, passage), Number.POSITIVE_INFINITY);
    const expected = dot(qwen3(tensors, ids).at(-1)!, direction);
    assert.ok(Math.abs(scores[i]! - expected) < 2e-5, `${query}: ${scores[i]}, expected ${expected}`);
  }
}

for (const [head, table, tensors, config] of [
  ['the word table', 'embed_tokens.weight', {}, {}],
  ['a head of its own', 'lm_head.weight', { 'lm_head.weight': [ROWS, HIDDEN] }, {}],
  [
    'the word table, to which it is tied,',
    'embed_tokens.weight',
    { 'lm_head.weight': [ROWS, HIDDEN] },
    { tie_word_embeddings: true },
  ],
] as const) {
  test(`Qwen3-Reranker with ${head} as its head scores a pair by the logit of yes minus that of no, after its prompt`, async (t) => {
    const checkpoint = await tinyReranker(t, { tensors, config });
    const { folder, description } = await imported(checkpoint);
    const [yes, no] = [ANSWERS.yes, ANSWERS.no].map((id) => tableRow(checkpoint.tensors, table, id));
    await assertScores(
      checkpoint,
      folder,
      yes!.map((value, i) => value - no![i]!),
    );
    const { kind, labels, activation, pooling, maxTokens } = description;
    assert.deepEqual(
      [kind, labels, activation, pooling, maxTokens.passage],
      ['cross-encoder', 1, 'sigmoid', 'last', 1024],
    );
    assert.equal(description.pairTemplate, chatOf('{query}', '{passage}'));
    await assert.rejects(openEncoder(folder), trawlError('MODEL_INVALID', /is a cross-encoder/));
  });
}

test('a conversion of Qwen3-Reranker to a classifier scores by its own head, after the same prompt', async (t) => {
  const checkpoint = await tinyReranker(t, {
    name: 'Qwen3-Reranker-0.6B-seq-cls',
    tensors: { 'score.weight': [1, HIDDEN] },
    config: { architectures: ['Qwen3ForSequenceClassification'] },
  });
  const { folder } = await imported(checkpoint);
  await assertScores(checkpoint, folder, tableRow(checkpoint.tensors, 'score.weight', 0));
});

test('in int8 a pair has the same score alone and among others', async (t) => {
  const { folder } = await imported(await tinyReranker(t), { precisions: ['int8'] });
  const together = await scoresOf(folder, PAIRS);
  const model = await openCrossEncoder(folder, { workers: 2 });
  t.after(() => model.close());
  for (const [i, [query, passage]] of PAIRS.entries()) {
    assert.equal((await model.score(query, [passage])).scores[0], together[i]);
  }
});

test('of a pair over the limit the passage is cut, or a long query, and the prompt is whole', async (t) => {
  const checkpoint = await tinyReranker(t);
  const { folder } = await imported(checkpoint);
  const model = await openCrossEncoder(folder, { workers: 1 });
  t.after(() => model.close());
  const long = 'words and more words '.repeat(600);
  const tokenizer = await TextTokenizer.load(join(checkpoint.folder, 'tokenizer.json'));
  const idsOf = (text: string): readonly number[] => tokenizer.contentIds(text, Number.POSITIVE_INFINITY);
  // More than half of the room.
  let longQuery = 'what is 42?';
  while (idsOf(longQuery).length < 600) longQuery += ' what is 42?';
  const { scores, outcomes } = await model.scorePairs([
    { query: 'what is 42?', passage: long },
    { query: longQuery, passage: long },
    { query: long, passage: long },
    { query: long, passage: 'short' },
    { query: 'what is 42?', passage: 'short' },
  ]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && [outcome.tokens === 1024, outcome.truncated]),
    [
      [true, true],
      [true, true],
      [true, true],
      [true, true],
      [false, false],
    ],
  );
  const [yes, no] = [ANSWERS.yes, ANSWERS.no].map((id) => tableRow(checkpoint.tensors, 'embed_tokens.weight', id));
  const direction = yes!.map((value, i) => value - no![i]!);
  // The query is whole, and the passage keeps its first tokens.
  for (const [i, query] of ['what is 42?', longQuery].entries()) {
    const [start, end] = [chatOf(query, long).slice(0, -END.length), END].map(idsOf);
    const ids = [...start!.slice(0, 1024 - end!.length), ...end!];
    assert.ok(Math.abs(scores[i]! - dot(qwen3(checkpoint.tensors, ids).at(-1)!, direction)) < 2e-5, query);
  }
  const refused = await model.scorePairs([{ query: long, passage: 'short' }], { truncate: 'passage' });
  assert.ok(!refused.outcomes[0]!.ok && /leaves no room for a passage/.test(refused.outcomes[0]!.error.message));
});

test('rerankers of Qwen3 whose prompt is not known, or without the tokens of the answers, are refused', async (t) => {
  const refused = async (options: Parameters<typeof tinyReranker>[1], message: RegExp) =>
    assert.rejects(imported(await tinyReranker(t, options)), trawlError('MODEL_INVALID', message));
  await refused({ name: 'my-reranker' }, /whose prompt is not known.*Qwen3-Reranker.*--rerank http/s);
  await refused(
    {
      name: 'my-classifier',
      tensors: { 'score.weight': [1, HIDDEN] },
      config: { architectures: ['Qwen3ForSequenceClassification'] },
    },
    /of the architecture qwen3, whose prompt is not known.*BAAI\/bge-reranker-base/s,
  );
  await refused({ config: { tie_word_embeddings: false } }, /lm_head\.weight/);
  await refused({ name: 'mine', config: { _name_or_path: 'Qwen/Qwen3-Reranker-0.6B' } }, /whose prompt is not known/);
  await refused({ config: { architectures: ['Qwen3Model'] } }, /Qwen3Model/);
  await refused({ tokenizer: rerankerTokenizer({ yes: 1500 }) }, /has no token "no"/);
  await refused(
    {
      tensors: { 'score.weight': [3, HIDDEN] },
      config: { architectures: ['Qwen3ForSequenceClassification'] },
    },
    /the model has 3 labels/,
  );
});

test('an encoder whose name is that of a reranker is imported as an encoder', async (t) => {
  const checkpoint = await tinyReranker(t);
  await mkdir(join(checkpoint.folder, '1_Pooling'));
  await writeFile(join(checkpoint.folder, '1_Pooling', 'config.json'), '{"pooling_mode_lasttoken": true}');
  assert.equal((await imported(checkpoint)).description.kind, 'encoder');
});

test('a description whose text of a pair lacks a place, or that is of an encoder, is refused', async (t) => {
  const { folder } = await imported(await tinyReranker(t));
  await changed(
    folder,
    { pairTemplate: 'only {query}' },
    /pairTemplate must have \{query\} once, and \{passage\} once after it/,
  );
  await changed(folder, { pairTemplate: '{passage} {query}' }, /pairTemplate must have/);
  await changed(folder, { kind: 'encoder' }, /pairTemplate is for the kind cross-encoder only/);
});

test('another text of a pair is another model: its checksum differs', async (t) => {
  const { folder } = await imported(await tinyReranker(t));
  const sha256 = async (): Promise<string> => {
    const model = await openCrossEncoder(folder, { workers: 1 });
    await model.close();
    return model.identity.sha256;
  };
  const before = await sha256();
  const path = join(folder, 'trawl-model.json');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('Given a web search query', 'Given a claim'));
  assert.notEqual(await sha256(), before);
});

async function changed(folder: string, change: object, message: RegExp): Promise<void> {
  const path = join(folder, 'trawl-model.json');
  const text = await readFile(path, 'utf8');
  await writeFile(path, JSON.stringify({ ...(JSON.parse(text) as object), ...change }));
  await assert.rejects(openCrossEncoder(folder, { workers: 1 }), trawlError('MODEL_INVALID', message));
  await writeFile(path, text);
}
