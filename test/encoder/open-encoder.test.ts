import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { type OpenEncoderOptions, openEncoder, openModelEncoder } from '../../src/encoder/open-encoder.ts';
import type { EncodeOptions, EncoderInput, TextEncoder } from '../../src/encoder/text-encoder.ts';
import { TOY_DIMENSION, toyModel, transformersModel } from './model-fixtures.ts';

const withoutModel = existsSync(join(packageRoot, 'models/token-average-256/model.onnx'))
  ? false
  : 'models/token-average-256 does not exist';

async function open(t: TestContext, folder: string, options: OpenEncoderOptions = {}): Promise<TextEncoder> {
  const encoder = await openEncoder(folder, { workers: 1, ...options });
  t.after(() => encoder.close());
  return encoder;
}

const QUERY: EncodeOptions = { inputType: 'query' };

async function vectorOf(encoder: TextEncoder, input: EncoderInput, options = QUERY): Promise<Float32Array> {
  const { vectors, outcomes } = await encoder.encode([input], options);
  assert.ok(outcomes[0]!.ok);
  return vectors;
}

function invalid(message: RegExp) {
  return (error: unknown) =>
    error instanceof TrawlError && error.code === 'MODEL_INVALID' && message.test(error.message);
}

test('texts become unit vectors, with their token counts', async (t) => {
  const encoder = await open(t, await toyModel(t));
  const { vectors, outcomes } = await encoder.encode(['what is a', '', 'the query '.repeat(40)], QUERY);
  assert.equal(encoder.dimension, TOY_DIMENSION);
  assert.deepEqual(outcomes, [
    { ok: true, tokens: 5, truncated: false, cut: 'nothing' },
    { ok: true, tokens: 2, truncated: false, cut: 'nothing' },
    { ok: true, tokens: 32, truncated: true, cut: 'tail' },
  ]);
  for (let row = 0; row < 3; row++) {
    const vector = vectors.subarray(row * TOY_DIMENSION, (row + 1) * TOY_DIMENSION);
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6);
  }
});

test('queries and passages have their own prefix and token limit', async (t) => {
  const folder = await toyModel(t, { change: (d) => (d.prefixes = { query: 'query: ', passage: 'passage: ' }) });
  const encoder = await open(t, folder);
  const bare = await open(t, await toyModel(t));
  assert.deepEqual(await vectorOf(encoder, 'a b'), await vectorOf(bare, 'query: a b'));
  assert.deepEqual(await vectorOf(encoder, 'a b', { inputType: 'passage' }), await vectorOf(bare, 'passage: a b'));
  assert.deepEqual(await vectorOf(encoder, 'a b', { inputType: 'plain' }), await vectorOf(bare, 'a b'));
  const { outcomes } = await encoder.encode(['a '.repeat(100)], { inputType: 'passage' });
  assert.deepEqual((await encoder.encode(['a '.repeat(100)], { inputType: 'plain' })).outcomes, outcomes);
  assert.deepEqual(outcomes, [{ ok: true, tokens: 64, truncated: true, cut: 'tail' }]);
});

test('a question and its query become one text, and on request the question is truncated', async (t) => {
  const encoder = await open(t, await toyModel(t));
  const pair = { question: 'who is a', query: 'what' };
  assert.deepEqual(await vectorOf(encoder, pair), await vectorOf(encoder, 'who is a [SEP] what'));
  const long = { question: 'a '.repeat(50), query: 'b c' };
  const shortened = await vectorOf(encoder, long, { inputType: 'query', truncate: 'question' });
  assert.deepEqual(shortened, await vectorOf(encoder, `${'a '.repeat(27)}[SEP] b c`));
});

test('a text for which the model gives NaN fails alone', async (t) => {
  const encoder = await open(t, await toyModel(t));
  const { vectors, outcomes } = await encoder.encode(['what', 'the nan', 'is'], QUERY);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok),
    [true, false, true],
  );
  const failed = outcomes[1]!;
  assert.ok(!failed.ok && failed.error instanceof TrawlError && failed.error.code === 'ENCODING_FAILED');
  assert.match(failed.error.message, /NaN in column 0 for a text of 4 tokens/);
  assert.deepEqual([...vectors.subarray(TOY_DIMENSION, 2 * TOY_DIMENSION)], new Array(TOY_DIMENSION).fill(0));
});

test('lone surrogates and NUL do not change the vector of a text', async (t) => {
  const encoder = await open(t, await toyModel(t));
  assert.deepEqual(await vectorOf(encoder, 'wh\u0000at\ud800'), await vectorOf(encoder, 'what'));
});

async function checkSameBits(t: TestContext, folder: string, texts: readonly string[]): Promise<void> {
  const one = await open(t, folder, { workers: 1 });
  const three = await open(t, folder, { workers: 3 });
  const { vectors } = await one.encode(texts, QUERY);
  const bits = (values: Float32Array) => new Uint32Array(values.buffer, values.byteOffset, values.length);
  const reversed = await three.encode([...texts].reverse(), QUERY);
  const { dimension } = one;
  for (let row = 0; row < texts.length; row++) {
    const mine = bits(vectors.subarray(row * dimension, (row + 1) * dimension));
    const at = texts.length - 1 - row;
    assert.deepEqual(mine, bits(reversed.vectors.subarray(at * dimension, (at + 1) * dimension)));
  }
  const alone = await three.encode([texts[7]!], QUERY);
  assert.deepEqual(bits(alone.vectors), bits(vectors.subarray(7 * dimension, 8 * dimension)));
}

const TEXTS = Array.from({ length: 400 }, (_, i) => `what is ${'the '.repeat(i % 23)}${i.toString(36)} of ${i * 7919}`);

test('a text has the same vector, bit for bit, in any batch and with any number of workers: toy', async (t) => {
  await checkSameBits(t, await toyModel(t), TEXTS);
});

test('a text has the same vector, bit for bit, in any batch and with any number of workers: token-average-256', {
  skip: withoutModel,
}, async (t) => {
  await checkSameBits(t, 'token-average-256', TEXTS);
});

test('token-average-256 puts a question nearer to its answer than to another text', {
  skip: withoutModel,
}, async (t) => {
  const encoder = await open(t, 'token-average-256');
  const { vectors } = await encoder.encode(
    [
      'Who discovered penicillin?',
      'Alexander Fleming found the antibiotic penicillin.',
      'The river flows into the sea.',
    ],
    { inputType: 'passage' },
  );
  const dot = (a: number, b: number) => {
    let sum = 0;
    for (let i = 0; i < encoder.dimension; i++)
      sum += vectors[a * encoder.dimension + i]! * vectors[b * encoder.dimension + i]!;
    return sum;
  };
  assert.ok(dot(0, 1) > dot(0, 2) + 0.1);
});

test('a graph with more inputs and several outputs works, and the pooling selects the output', async (t) => {
  const folder = await transformersModel(t, 'exported');
  const pooled = await open(t, folder, { overrides: { pooling: 'none', normalize: false } });
  const mean = await open(t, folder, { overrides: { pooling: 'mean', normalize: false } });
  const pooler = await open(t, folder, { overrides: { pooling: 'pooler', normalize: false } });
  const expected = await vectorOf(pooled, 'what is a');
  const close = (a: Float32Array, b: Float32Array) => a.every((value, i) => Math.abs(value - b[i]!) < 1e-5);
  assert.ok(close(await vectorOf(mean, 'what is a'), expected));
  assert.ok(close(await vectorOf(pooler, 'what is a'), expected.map(Math.tanh)));
});

test('a model that cannot be used is refused when it is opened', async (t) => {
  const dimension = await toyModel(t, { change: (d) => (d.dimension = 12) });
  await assert.rejects(openEncoder(dimension, { workers: 2 }), invalid(/returns vectors of 10 dimensions.*says 12/));
  const output = await toyModel(t, {
    change: (d) => (d.graph = { path: 'model.onnx', precision: 'float32', output: 'x' }),
  });
  await assert.rejects(openEncoder(output, { workers: 1 }), invalid(/no output x.*it has last_hidden_state/));
  const pooler = await toyModel(t, {
    change: (d) => Object.assign(d, { pooling: 'pooler', graph: { path: 'model.onnx', precision: 'float32' } }),
  });
  await assert.rejects(
    openEncoder(pooler, { workers: 1 }),
    invalid(/no output pooler_output, which pooling "pooler" needs/),
  );

  const graph = await toyModel(t, { change: (d) => (d.files = []) });
  await writeFile(join(graph, 'model.onnx'), 'no graph');
  await assert.rejects(openEncoder(graph, { workers: 1 }), invalid(/onnxruntime cannot load .*model\.onnx/));
  const tokenizer = await toyModel(t, { change: (d) => (d.files = []) });
  await writeFile(join(tokenizer, 'tokenizer.json'), '{}');
  await assert.rejects(openEncoder(tokenizer, { workers: 1 }), invalid(/is not a usable tokenizer/));
});

test('a smaller dimension keeps the first values of a vector and normalises them again', async (t) => {
  const folder = await toyModel(t);
  const whole = await vectorOf(await open(t, folder), 'what is a');
  const encoder = await open(t, folder, { overrides: { dimension: 4 } });
  assert.deepEqual(
    [encoder.dimension, encoder.identity.dimension, encoder.identity.fullDimension],
    [4, 4, TOY_DIMENSION],
  );
  const head = [...whole.subarray(0, 4)];
  const length = Math.hypot(...head);
  for (const [i, value] of (await vectorOf(encoder, 'what is a')).entries()) {
    assert.ok(Math.abs(value - head[i]! / length) < 1e-6);
  }
  for (const dimension of [0, TOY_DIMENSION + 1, 1.5]) {
    await assert.rejects(openEncoder(folder, { overrides: { dimension } }), /dimension is .*from 1 to 10/);
  }
});

test('the identity lists the overrides that differ from the model, and no others', async (t) => {
  const folder = await toyModel(t);
  const same = await open(t, folder, { overrides: { pooling: 'mean', queryPrefix: '', maxQueryTokens: 32 } });
  assert.equal(same.identity.overrides, undefined);
  const set = await open(t, folder, {
    overrides: { pooling: 'cls', passagePrefix: 'passage: ', maxPassageTokens: 12 },
  });
  assert.deepEqual(set.identity.overrides, ['maxPassageTokens', 'passagePrefix', 'pooling']);
});

test('texts have the same vectors, up to rounding, in padded batches and alone, in the same order', {
  skip: withoutModel,
}, async (t) => {
  const model = await readModelFolder('token-average-256');
  const texts = Array.from({ length: 300 }, (_, i) => (i % 50 === 7 ? '' : `word${i % 13} `.repeat((i * 7) % 61)));
  const vectors: Float32Array[] = [];
  for (const batchTokens of [null, 512]) {
    const pool = await openModelEncoder({ model, workers: 2, batchTokens });
    t.after(() => pool.close());
    const encoded = await pool.encode(texts, { inputType: 'passage' });
    assert.ok(encoded.outcomes.every((outcome) => outcome.ok));
    vectors.push(encoded.vectors);
  }
  for (const [i, value] of vectors[0]!.entries()) assert.ok(Math.abs(value - vectors[1]![i]!) < 1e-6, `${i}`);
});
