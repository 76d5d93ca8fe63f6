import assert from 'node:assert/strict';
import { readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { generatingModelMessage } from '../../../indexer/model-import/model-kind.ts';
import { checkLayers } from '../../../indexer/model-import/weight-finder.ts';
import type { ErrorCode, TrawlError } from '../../../src/base/errors.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';

const LFS_POINTER = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 90868376\n`;

/** What is wrong with a checkpoint, how to make it, and the error of its import. */
const BAD: readonly [string, TinyOptions, (folder: string) => Promise<void>, ErrorCode, RegExp][] = [
  [
    'lacks a tensor',
    { tensors: { 'encoder.layer.1.output.dense.bias': [] } },
    async () => {},
    'MODEL_INVALID',
    /no tensor encoder\.layer\.1\.output\.dense\.bias/,
  ],
  [
    'was cloned without Git LFS',
    {},
    async (folder) => writeFile(join(folder, 'model.safetensors'), LFS_POINTER),
    'MODEL_INVALID',
    /model\.safetensors is a pointer of Git LFS.*git lfs pull/,
  ],
  [
    'was cloned with a tokenizer that Git LFS holds',
    {},
    async (folder) => writeFile(join(folder, 'tokenizer.json'), LFS_POINTER),
    'MODEL_INVALID',
    /tokenizer\.json is a pointer of Git LFS.*git lfs pull/,
  ],
  [
    'is an adapter of another model',
    {},
    async (folder) => {
      await rm(join(folder, 'config.json'));
      await writeFile(join(folder, 'adapter_config.json'), JSON.stringify({ base_model_name_or_path: 'org/base' }));
    },
    'MODEL_INVALID',
    /has an adapter \(LoRA\) of "org\/base".*merge_and_unload/,
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
    /weights of layer 1 .* num_hidden_layers in config\.json is 1\b/,
  ],
  [
    'has a layer beyond those of its config, with a gap before it',
    { tensors: { 'encoder.layer.3.attention.self.query.weight': [HIDDEN, HIDDEN] } },
    async () => {},
    'MODEL_INVALID',
    /weights of layer 3 .* num_hidden_layers in config\.json is 2\b/,
  ],
  [
    'has a wrong shape',
    { tensors: { 'encoder.layer.0.intermediate.dense.weight': [HIDDEN, 24] } },
    async () => {},
    'MODEL_INVALID',
    /has the shape \[16, 24\], but config\.json implies \[24, 16\]/,
  ],
  [
    'has another vocabulary size',
    { config: { vocab_size: 119 } },
    async () => {},
    'MODEL_INVALID',
    /word_embeddings\.weight has the shape \[120, 16\]/,
  ],
  [
    'has integer weights',
    {
      change: (all) => {
        all['embeddings.LayerNorm.bias'] = { dtype: 'I32', shape: [16], bytes: new Uint8Array(64) };
      },
    },
    async () => {},
    'MODEL_INVALID',
    /the type I32\. Expected one of F32, F16, BF16/,
  ],
  [
    'has a tokenizer with more tokens than embeddings',
    { tensors: { 'embeddings.word_embeddings.weight': [100, HIDDEN] }, config: { vocab_size: 100 } },
    async () => {},
    'MODEL_INVALID',
    /the token id 118, but the model has embeddings for 100/,
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
  [
    'has a truncated weights file',
    {},
    (folder) => truncate(join(folder, 'model.safetensors'), 20_000),
    'MODEL_INVALID',
    /is incomplete/,
  ],
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
    /no tensor is named embeddings\.word_embeddings\.weight, with or without a prefix/,
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
    /has 3 labels\. A cross-encoder has one.*A reranker would fit, for example BAAI\/bge-reranker-base/,
  ],
  [
    'is a classifier without its head',
    { config: { architectures: ['BertForSequenceClassification'] } },
    async () => {},
    'MODEL_INVALID',
    /no tensor classifier\.weight/,
  ],
  [
    'is of an architecture without graphs',
    { modelType: 'mpnet' },
    async () => {},
    'MODEL_INVALID',
    /"mpnet" is not supported.*bert, roberta, .*\(E5, BGE, MiniLM\).*ONNX/s,
  ],
  ...(
    [
      ['llama', { architectures: ['LlamaForCausalLM'] }, /a causal language model.*An encoder would fit/s],
      ['mistral', { architectures: ['MistralForSequenceClassification'] }, /cross-encoder.*BAAI\/bge-reranker-base/s],
      ['bart', { architectures: ['BartForConditionalGeneration'] }, /an encoder-decoder/],
      ['qwen3_vl', { architectures: ['Qwen3VLForConditionalGeneration'], vision_config: {} }, /a vision model/],
      ['vit', { architectures: ['ViTModel'], image_size: 224 }, /a vision model, which takes images/],
      ['clip', { architectures: ['CLIPModel'] }, /a vision model/],
      ['whisper', { architectures: ['WhisperForConditionalGeneration'] }, /a speech model/],
      [
        'electra',
        { architectures: ['ElectraForTokenClassification'] },
        /a token classifier, which labels every token.*An encoder would fit/s,
      ],
    ] as const
  ).map(([modelType, config, message]): (typeof BAD)[number] => [
    `is of the architecture ${modelType}`,
    { modelType, config },
    async () => {},
    'MODEL_INVALID',
    message,
  ]),
  [
    'has relative positions',
    { config: { position_embedding_type: 'relative_key' } },
    async () => {},
    'MODEL_INVALID',
    /only "absolute" is supported/,
  ],
  ['is a decoder', { config: { is_decoder: true } }, async () => {}, 'MODEL_INVALID', /is a decoder/],
  [
    'has an unknown activation',
    { config: { hidden_act: 'silu' } },
    async () => {},
    'MODEL_INVALID',
    /hidden_act is "silu"; expected one of gelu/,
  ],
  [
    'has a hidden size that its number of heads does not divide',
    { config: { num_attention_heads: 5 } },
    async () => {},
    'MODEL_INVALID',
    /16 is not a multiple of num_attention_heads 5/,
  ],
  ['has no layers', { config: { num_hidden_layers: 0 } }, async () => {}, 'MODEL_INVALID', /num_hidden_layers is 0/],
  [
    'has a string as a size',
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

test('an unsupported architecture is named in the details of the error', async (t) => {
  for (const modelType of ['mpnet', 'llama']) {
    const { folder } = await tinyCheckpoint(t, { modelType, config: { architectures: ['LlamaForCausalLM'] } });
    await assert.rejects(imported(folder), (error: TrawlError) => {
      assert.equal(error.details.modelType, modelType);
      return trawlError('MODEL_INVALID')(error);
    });
  }
});

test('an import that meets a NaN weight fails and leaves no folder', async (t) => {
  const nan = Float32Array.from({ length: HIDDEN }, () => Number.NaN);
  const { folder } = await tinyCheckpoint(t, {
    change: (all) => {
      all['encoder.layer.1.output.dense.bias'] = { dtype: 'F32', shape: [HIDDEN], bytes: new Uint8Array(nan.buffer) };
    },
  });
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /layer\.1\.output\.dense\.bias contains NaN/));
  assert.deepEqual(await readdir(join(folder, '..')), ['tiny']);
});

test('a weight too large for float16 is refused with its value', async (t) => {
  const large = Float32Array.from({ length: HIDDEN }, () => 70_000);
  const { folder } = await tinyCheckpoint(t, {
    change: (all) => {
      all['encoder.layer.1.output.dense.bias'] = { dtype: 'F32', shape: [HIDDEN], bytes: new Uint8Array(large.buffer) };
    },
  });
  await assert.rejects(
    imported(folder, { precisions: ['float16'] }),
    trawlError('MODEL_INVALID', /70000, which is too large for float16/),
  );
});

test('the refusal of a model that generates text names the pooling that its architecture would take', () => {
  const messageOf = (modelType: string, name: string): string =>
    generatingModelMessage('/models/new/config.json', { model_type: modelType, architectures: [name] });
  assert.match(messageOf('qwen3', 'Qwen3ForCausalLM'), /a causal language model.*--pooling last/s);
  assert.match(messageOf('t5', 'T5ForConditionalGeneration'), /an encoder-decoder.*--pooling mean/s);
});

test('a file of more layers than a call may have arguments is refused by its last one', () => {
  const names = Array.from({ length: 200_000 }, (_, i) => `layer.${i}.weight`);
  assert.throws(
    () => checkLayers({ names, files: ['x.safetensors'] }, 'layer.', 12, 'num_hidden_layers'),
    trawlError('MODEL_INVALID', /weights of layer 199999 .* 12/),
  );
  checkLayers({ names, files: [] }, 'layer.', 200_000, 'num_hidden_layers');
  checkLayers({ names: [], files: [] }, 'layer.', 12, 'num_hidden_layers');
});
