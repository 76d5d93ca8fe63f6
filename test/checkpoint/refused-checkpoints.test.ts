import assert from 'node:assert/strict';
import { readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ErrorCode } from '../../src/errors.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';

/** A checkpoint with the file of weights damaged, or the config changed, and what must be said of it. */
const BAD: readonly [string, TinyOptions, (folder: string) => Promise<void>, ErrorCode, RegExp][] = [
  [
    'lacks a tensor',
    { tensors: { 'encoder.layer.1.output.dense.bias': [] } },
    async () => {},
    'MODEL_INVALID',
    /no tensor encoder\.layer\.1\.output\.dense\.bias/,
  ],
  [
    'lacks layers',
    { config: { num_hidden_layers: 3 } },
    async () => {},
    'MODEL_INVALID',
    /no tensor encoder\.layer\.2\./,
  ],
  [
    'has more layers than its config says',
    { config: { num_hidden_layers: 1 } },
    async () => {},
    'MODEL_INVALID',
    /weights of layer 1 .* num_hidden_layers 1\b/,
  ],
  [
    'has a wrong shape',
    { tensors: { 'encoder.layer.0.intermediate.dense.weight': [HIDDEN, 24] } },
    async () => {},
    'MODEL_INVALID',
    /has the shape \[16, 24\]; by config\.json it is \[24, 16\]/,
  ],
  [
    'has another vocabulary size',
    { config: { vocab_size: 119 } },
    async () => {},
    'MODEL_INVALID',
    /word_embeddings\.weight has the shape \[120, 16\]/,
  ],
  [
    'has integers for weights',
    {
      change: (all) => {
        all['embeddings.LayerNorm.bias'] = { dtype: 'I32', shape: [16], bytes: new Uint8Array(64) };
      },
    },
    async () => {},
    'MODEL_INVALID',
    /the type I32; supported are F32, F16, BF16/,
  ],
  [
    'has a tokenizer with more tokens than embeddings',
    { tensors: { 'embeddings.word_embeddings.weight': [100, HIDDEN] }, config: { vocab_size: 100 } },
    async () => {},
    'MODEL_INVALID',
    /the token id 118; the model has embeddings for 100/,
  ],
  [
    'has no tokenizer',
    {},
    (folder) => rm(join(folder, 'tokenizer.json')),
    'MODEL_INVALID',
    /tokenizer\.json is missing/,
  ],
  ['has no config', {}, (folder) => rm(join(folder, 'config.json')), 'MODEL_INVALID', /config\.json is missing/],
  [
    'has no weights',
    {},
    (folder) => rm(join(folder, 'model.safetensors')),
    'MODEL_INVALID',
    /neither model\.safetensors/,
  ],
  ['is cut off', {}, (folder) => truncate(join(folder, 'model.safetensors'), 20_000), 'MODEL_INVALID', /cut off/],
  [
    'holds several encoders',
    { tensors: { 'other.embeddings.word_embeddings.weight': [1, 1] }, prefix: 'one.' },
    async () => {},
    'MODEL_INVALID',
    /several encoders/,
  ],
  [
    'holds no encoder',
    {
      change: (all) => {
        delete all['embeddings.word_embeddings.weight'];
      },
    },
    async () => {},
    'MODEL_INVALID',
    /under any prefix/,
  ],
  [
    'is a classifier of three classes',
    {
      prefix: 'bert.',
      tensors: { 'classifier.weight': [3, HIDDEN], 'classifier.bias': [3] },
      config: { architectures: ['BertForSequenceClassification'] },
    },
    async () => {},
    'MODEL_INVALID',
    /gives 3 values a pair; a cross-encoder gives one/,
  ],
  [
    'is a classifier without its head',
    { config: { architectures: ['BertForSequenceClassification'] } },
    async () => {},
    'MODEL_INVALID',
    /no tensor classifier\.weight/,
  ],
  ...['t5', 'llama', 'modernbert', 'mpnet', 'nomic_bert'].map((modelType): (typeof BAD)[number] => [
    `is of the architecture ${modelType}`,
    { modelType },
    async () => {},
    'MODEL_INVALID',
    /out of scope.*E5, BGE and MiniLM.*ONNX/s,
  ]),
  [
    'has relative positions',
    { config: { position_embedding_type: 'relative_key' } },
    async () => {},
    'MODEL_INVALID',
    /supported is "absolute"/,
  ],
  ['is a decoder', { config: { is_decoder: true } }, async () => {}, 'MODEL_INVALID', /is a decoder/],
  [
    'has an unknown activation',
    { config: { hidden_act: 'silu' } },
    async () => {},
    'MODEL_INVALID',
    /hidden_act is "silu"; supported are gelu/,
  ],
  [
    'has heads that do not divide',
    { config: { num_attention_heads: 5 } },
    async () => {},
    'MODEL_INVALID',
    /16 is no multiple of num_attention_heads 5/,
  ],
  ['has no layers', { config: { num_hidden_layers: 0 } }, async () => {}, 'MODEL_INVALID', /num_hidden_layers is 0/],
  [
    'has a size that is text',
    { config: { intermediate_size: '24' } },
    async () => {},
    'MODEL_INVALID',
    /intermediate_size is "24"/,
  ],
];

for (const [how, options, damage, code, message] of BAD) {
  test(`a checkpoint that ${how} is refused before anything is written`, async (t) => {
    const { folder } = await tinyCheckpoint(t, options);
    await damage(folder);
    const before = await readdir(join(folder, '..'));
    await assert.rejects(imported(folder), trawlError(code, message));
    assert.deepEqual(await readdir(join(folder, '..')), before);
  });
}

test('a weight that turns out to be NaN leaves no folder behind', async (t) => {
  const nan = Float32Array.from({ length: HIDDEN }, () => Number.NaN);
  const { folder } = await tinyCheckpoint(t, {
    change: (all) => {
      all['encoder.layer.1.output.dense.bias'] = { dtype: 'F32', shape: [HIDDEN], bytes: new Uint8Array(nan.buffer) };
    },
  });
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /layer\.1\.output\.dense\.bias holds NaN/));
  assert.deepEqual(await readdir(join(folder, '..')), ['tiny']);
});

test('a weight too large for float16 is said to be so', async (t) => {
  const large = Float32Array.from({ length: HIDDEN }, () => 70_000);
  const { folder } = await tinyCheckpoint(t, {
    change: (all) => {
      all['encoder.layer.1.output.dense.bias'] = { dtype: 'F32', shape: [HIDDEN], bytes: new Uint8Array(large.buffer) };
    },
  });
  await assert.rejects(
    imported(folder, { precisions: ['float16'] }),
    trawlError('MODEL_INVALID', /70000, which float16 cannot/),
  );
});
