import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { type ImportedModel, type ImportOptions, importModel } from '../../checkpoint/import-model.ts';
import { readModelFolder, verifyModelFolder } from '../../src/embedding/model-folder.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { TextTokenizer } from '../../src/embedding/tokenizer.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { fixture, transformersModel, writeJson } from '../embedding/model-fixtures.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { gelu, geluTanh, ReferenceEncoder, relu } from './reference-encoder.ts';
import {
  HIDDEN,
  LAYERS,
  POSITIONS,
  type TinyCheckpoint,
  type TinyOptions,
  tinyCheckpoint,
  VOCABULARY,
} from './tiny-checkpoint.ts';

/** Three texts; the second and third end in padding. */
const MASK = [
  [1, 1, 1, 1, 1, 1, 1],
  [1, 1, 1, 1, 0, 0, 0],
  [1, 0, 0, 0, 0, 0, 0],
];
const IDS = [
  [2, 17, 45, 5, 118, 99, 3],
  [2, 60, 17, 3, 0, 0, 0],
  [2, 0, 0, 0, 0, 0, 0],
];
const TYPES = MASK.map((row) => row.map((attended, i) => (attended === 1 && i > 2 ? 1 : 0)));

async function imported(source: TinyCheckpoint | string, options: Partial<ImportOptions> = {}): Promise<ImportedModel> {
  const folder = typeof source === 'string' ? source : source.folder;
  return importModel(folder, { out: `${folder}-out`, precisions: ['float32'], ...options });
}

/** Outputs of a graph for the batch above, by name, as rows. */
async function run(
  folder: string,
  graph: string,
  padding = 0,
): Promise<Record<string, { dims: readonly number[]; data: Float32Array }>> {
  const session = await InferenceSession.create(join(folder, graph), { intraOpNumThreads: 1 });
  const ids = IDS.map((row, i) => row.map((id, j) => (MASK[i]![j] === 0 ? padding : id)));
  const all: Readonly<Record<string, number[][]>> = { input_ids: ids, attention_mask: MASK, token_type_ids: TYPES };
  const feeds = session.inputNames.map((name) => [
    name,
    new Tensor('int64', BigInt64Array.from(all[name]!.flat(), BigInt), [3, 7]),
  ]);
  const outputs = await session.run(Object.fromEntries(feeds));
  await session.release();
  return outputs as unknown as Record<string, { dims: readonly number[]; data: Float32Array }>;
}

/** Largest difference of a graph's attended token vectors from the reference's. */
function difference(reference: ReferenceEncoder, hidden: Float32Array, types: number[][], padding: number): number {
  let worst = 0;
  for (const [text, mask] of MASK.entries()) {
    const ids = IDS[text]!.map((id, i) => (mask[i] === 0 ? padding : id));
    const rows = reference.hidden(ids, types[text]!, mask);
    for (const [i, row] of rows.entries()) {
      if (mask[i] === 0) continue;
      const at = (text * mask.length + i) * HIDDEN;
      for (const [column, value] of row.entries()) worst = Math.max(worst, Math.abs(hidden[at + column]! - value));
    }
  }
  return worst;
}

const ZEROS = MASK.map((row) => row.map(() => 0));
const BERT = { layers: LAYERS, heads: 4, epsilon: 1e-5, activation: gelu, padding: null };
const ROBERTA = { ...BERT, padding: 1 };

const MODELS: readonly [string, TinyOptions, ConstructorParameters<typeof ReferenceEncoder>[1]][] = [
  ['BERT', {}, BERT],
  ['BERT in float16', { dtype: 'F16' }, BERT],
  ['BERT in bfloat16', { dtype: 'BF16' }, BERT],
  ['BERT in three shards', { shards: 3 }, BERT],
  ['BERT below a head', { prefix: 'bert.', tensors: { 'cls.predictions.bias': [VOCABULARY] } }, BERT],
  ['BERT below another prefix', { prefix: 'model.encoder_q.' }, BERT],
  ['BERT with the tanh GELU', { config: { hidden_act: 'gelu_new' } }, { ...BERT, activation: geluTanh }],
  ['BERT with ReLU', { config: { hidden_act: 'relu' } }, { ...BERT, activation: relu }],
  ['BERT with one token type', { tokenTypes: 1 }, BERT],
  ['RoBERTa', { modelType: 'roberta', tokenTypes: 1, config: { pad_token_id: 1 } }, ROBERTA],
  [
    'XLM-RoBERTa in bfloat16',
    { modelType: 'xlm-roberta', dtype: 'BF16', tokenTypes: 1, config: { pad_token_id: 1 } },
    ROBERTA,
  ],
];

for (const [name, options, config] of MODELS) {
  test(`${name}: the graph computes what the formulas say, padding or not`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, options);
    const { folder, description } = await imported(checkpoint);
    const { last_hidden_state: hidden, pooler_output: pooled } = await run(
      folder,
      description.graph.path,
      config.padding ?? 0,
    );
    const reference = new ReferenceEncoder(checkpoint.tensors, config);
    const types = options.tokenTypes === 1 ? ZEROS : TYPES;
    assert.deepEqual(hidden!.dims, [3, 7, HIDDEN]);
    assert.ok(difference(reference, hidden!.data, types, config.padding ?? 0) < 5e-6);
    const first = reference.pooled(reference.hidden(IDS[0]!, types[0]!, MASK[0]!));
    assert.ok(first.every((value, i) => Math.abs(value - pooled!.data[i]!) < 5e-6));
  });
}

test('names of old are understood, and a missing pooler is not missed', async (t) => {
  const checkpoint = await tinyCheckpoint(t, {
    tensors: { 'pooler.dense.weight': [], 'pooler.dense.bias': [] },
    change: (tensors) => {
      for (const name of Object.keys(tensors).filter((key) => key.includes('LayerNorm'))) {
        tensors[name.replace(/weight$/, 'gamma').replace(/bias$/, 'beta')] = tensors[name]!;
        delete tensors[name];
      }
    },
  });
  const { folder } = await imported(checkpoint);
  const outputs = await run(folder, 'model.onnx');
  assert.deepEqual(Object.keys(outputs), ['last_hidden_state']);
  assert.ok(
    difference(new ReferenceEncoder(checkpoint.tensors, BERT), outputs.last_hidden_state!.data, TYPES, 0) < 5e-6,
  );
});

test('one checkpoint gives a graph in every precision, each near the exact one', async (t) => {
  const checkpoint = await tinyCheckpoint(t);
  const { folder, description } = await imported(checkpoint, { precisions: ['int8', 'float32', 'float16'] });
  assert.deepEqual(
    description.graphs!.map(({ path, precision }) => [precision, path]),
    [
      ['int8', 'model-int8.onnx'],
      ['float32', 'model.onnx'],
      ['float16', 'model-float16.onnx'],
    ],
  );
  const reference = new ReferenceEncoder(checkpoint.tensors, BERT);
  for (const [path, most] of [
    ['model.onnx', 5e-6],
    ['model-float16.onnx', 0.02],
    ['model-int8.onnx', 0.25],
  ] as const) {
    const { last_hidden_state: hidden } = await run(folder, path);
    const worst = difference(reference, hidden!.data, TYPES, 0);
    assert.ok(worst < most, `${path}: ${worst}`);
    assert.ok(path === 'model.onnx' || worst > 1e-5, `${path} is as exact as float32`);
  }
});

test('the folder is a model: its precisions can be chosen, its identity is that of the chosen graph', async (t) => {
  const checkpoint = await tinyCheckpoint(t);
  const { folder, description } = await imported(checkpoint, { precisions: ['float32', 'int8'], name: 'tiny-one' });
  const byDefault = await readModelFolder(folder);
  const int8 = await readModelFolder(folder, {}, { precision: 'int8' });
  assert.deepEqual([byDefault.identity.precision, int8.identity.precision], ['float32', 'int8']);
  assert.deepEqual([byDefault.identity.name, byDefault.precisions], ['tiny-one', ['float32', 'int8']]);
  assert.notEqual(byDefault.identity.sha256, int8.identity.sha256);
  assert.equal(byDefault.weightsSha256, description.weightsSha256);
  assert.equal(await verifyModelFolder(byDefault), 3);
  await assert.rejects(
    readModelFolder(folder, {}, { precision: 'float16' }),
    trawlError('CONFIG_INVALID', /it has float32, int8/),
  );
  await assert.rejects(
    readModelFolder(folder, {}, { kind: 'cross-encoder' }),
    trawlError('MODEL_INVALID', /is an encoder/),
  );
  await assert.rejects(
    readModelFolder(folder, { maxPassageTokens: POSITIONS + 1 }),
    trawlError('CONFIG_INVALID', /40/),
  );
  const encoder = await openEncoder(folder, { workers: 1 });
  const { vectors } = await encoder.encode(['what is the query'], { kind: 'query' });
  assert.ok(Math.abs(vectors.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-6);
  await encoder.close();
});

test('the same weights have the same checksum, in whatever precisions they were imported; other weights another', async (t) => {
  const one = await imported(await tinyCheckpoint(t), { precisions: ['int8'] });
  const same = await imported(await tinyCheckpoint(t));
  const other = await imported(await tinyCheckpoint(t, { dtype: 'F16' }));
  assert.equal(one.description.weightsSha256, same.description.weightsSha256);
  assert.notEqual(other.description.weightsSha256, same.description.weightsSha256);
});

test('large weights lie beside the graph, aligned, and are part of the model', async (t) => {
  const wide = { 'embeddings.word_embeddings.weight': [600_000, HIDDEN] };
  const checkpoint = await tinyCheckpoint(t, { tensors: wide, config: { vocab_size: 600_000 } });
  const { folder, description } = await imported(checkpoint);
  assert.deepEqual(description.graph.externalData, ['model.onnx.data']);
  const { last_hidden_state: hidden } = await run(folder, 'model.onnx');
  assert.ok(difference(new ReferenceEncoder(checkpoint.tensors, BERT), hidden!.data, TYPES, 0) < 5e-6);
  const before = (await readModelFolder(folder)).identity.sha256;
  const path = join(folder, 'trawl-model.json');
  const text = await readFile(path, 'utf8');
  const data = description.files.find((file) => file.path === 'model.onnx.data')!;
  await writeFile(path, text.replace(data.sha256, '0'.repeat(64)));
  assert.notEqual((await readModelFolder(folder)).identity.sha256, before, 'weights decide the identity');
  await writeFile(path, text);
  await truncate(join(folder, 'model.onnx.data'), 1000);
  await assert.rejects(readModelFolder(folder), trawlError('MODEL_INVALID', /model\.onnx\.data has 1000 bytes/));
});

const CLASSIFIERS: readonly [string, TinyOptions][] = [
  [
    'BertForSequenceClassification',
    { prefix: 'bert.', tensors: { 'classifier.weight': [1, HIDDEN], 'classifier.bias': [1] } },
  ],
  [
    'XLMRobertaForSequenceClassification',
    {
      modelType: 'xlm-roberta',
      prefix: 'roberta.',
      tensors: {
        'classifier.dense.weight': [HIDDEN, HIDDEN],
        'classifier.dense.bias': [HIDDEN],
        'classifier.out_proj.weight': [1, HIDDEN],
        'classifier.out_proj.bias': [1],
      },
    },
  ],
];

for (const [architecture, options] of CLASSIFIERS) {
  test(`${architecture} becomes a cross-encoder with its logits`, async (t) => {
    const config = { architectures: [architecture], pad_token_id: options.modelType === undefined ? 0 : 1 };
    const checkpoint = await tinyCheckpoint(t, { ...options, config });
    const { folder, description } = await imported(checkpoint, { precisions: ['float32', 'int8'] });
    const bert = options.modelType === undefined;
    const reference = new ReferenceEncoder(checkpoint.tensors, bert ? BERT : ROBERTA);
    const { logits, ...others } = await run(folder, 'model.onnx', bert ? 0 : 1);
    assert.deepEqual(others, {});
    assert.deepEqual(logits!.dims, [3, 1]);
    for (const [text, mask] of MASK.entries()) {
      const ids = IDS[text]!.map((id, i) => (mask[i] === 0 && !bert ? 1 : id));
      const hidden = reference.hidden(ids, TYPES[text]!, mask);
      const features = reference.pooled(hidden, bert ? 'pooler.dense' : 'classifier.dense');
      const expected = reference.dense(bert ? 'classifier' : 'classifier.out_proj', features);
      expected.forEach((value, i) => {
        assert.ok(Math.abs(logits!.data[text + i]! - value) < 5e-6);
      });
    }
    assert.deepEqual(
      [description.kind, description.labels, description.activation, description.graph.output],
      ['cross-encoder', 1, 'sigmoid', 'logits'],
    );
    await assert.rejects(readModelFolder(folder), trawlError('MODEL_INVALID', /is a cross-encoder/));
    assert.equal((await readModelFolder(folder, {}, { kind: 'cross-encoder' })).labels, 1);
  });
}

test('a cross-encoder keeps the activation that its config names', async (t) => {
  const tensors = { 'classifier.weight': [1, HIDDEN], 'classifier.bias': [1] };
  const names: readonly [Record<string, unknown>, string][] = [
    [{ sentence_transformers: { activation_fn: 'torch.nn.modules.linear.Identity' } }, 'identity'],
    [{ sbert_ce_default_activation_function: 'torch.nn.modules.activation.Sigmoid' }, 'sigmoid'],
  ];
  for (const [named, activation] of names) {
    const config = { architectures: ['BertForSequenceClassification'], ...named };
    const { description } = await imported(await tinyCheckpoint(t, { prefix: 'bert.', tensors, config }));
    assert.equal(description.activation, activation);
  }
});

test('a vocab.txt stands for the tokenizer that Transformers makes of it', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const own = JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as {
    model: { vocab: Record<string, number> };
  };
  const words = Object.entries(own.model.vocab).sort((a, b) => a[1] - b[1]);
  await rm(join(folder, 'tokenizer.json'));
  await writeFile(join(folder, 'vocab.txt'), `${words.map(([word]) => word).join('\n')}\n`);
  const result = await imported(folder);
  const made = await TextTokenizer.load(join(result.folder, 'tokenizer.json'));
  const expected = await TextTokenizer.load(fixture('tokenizer.json'));
  for (const text of ['What is THE query?', 'née [SEP] 中文 x', '']) {
    assert.deepEqual(made.frame(made.contentIds(text, 99)), expected.frame(expected.contentIds(text, 99)));
  }
  await writeJson(join(folder, 'tokenizer_config.json'), { do_lower_case: false });
  const cased = await importModel(folder, { out: `${folder}-cased`, precisions: ['float32'] });
  const tokenizer = JSON.parse(await readFile(join(cased.folder, 'tokenizer.json'), 'utf8')) as { normalizer: unknown };
  assert.deepEqual(tokenizer.normalizer, {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: false,
  });
});

test('prefixes and pooling come from the files, the family from the source id', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const e5 = await imported(folder, { source: { kind: 'hub', id: 'intfloat/e5-base-v2', revision: 'abc' } });
  assert.deepEqual(
    [e5.description.prefixes, e5.description.name],
    [{ query: 'query: ', passage: 'passage: ' }, 'intfloat/e5-base-v2'],
  );
  assert.deepEqual(e5.description.source, { kind: 'hub', id: 'intfloat/e5-base-v2', revision: 'abc' });
  await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode_cls_token: true });
  await writeJson(join(folder, 'config_sentence_transformers.json'), { prompts: { query: 'q> ' } });
  const stated = await importModel(folder, { out: `${folder}-stated`, precisions: ['float32'] });
  assert.deepEqual([stated.description.pooling, stated.description.prefixes.query], ['cls', 'q> ']);
});

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

test('what is in the way of the new folder stays; what an ended import left behind goes', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  await mkdir(`${folder}-out.partial`);
  await writeFile(join(`${folder}-out.partial`, 'model.onnx'), 'half');
  await imported(folder);
  assert.ok(!existsSync(`${folder}-out.partial`));
  await assert.rejects(imported(folder), trawlError('OUTPUT_NOT_WRITABLE', /exists already/));
  await assert.rejects(importModel(join(folder, 'no'), { out: join(folder, 'x') }), trawlError('MODEL_NOT_FOUND'));
  const wrong = importModel(folder, { out: `${folder}-2`, precisions: ['int8', 'int8'] });
  await assert.rejects(wrong, trawlError('CONFIG_INVALID', /each once/));
});

test('of two imports to one place at once the second is refused and the first is whole', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const busy = trawlError('OUTPUT_NOT_WRITABLE', /by another process at this moment/);
  let second: Promise<void> | undefined;
  await imported(folder, { onProgress: () => (second ??= assert.rejects(imported(folder), busy)) });
  await second;
  await readModelFolder(`${folder}-out`);
  assert.deepEqual((await readdir(join(folder, '..'))).sort(), ['tiny', 'tiny-out']);
});

test('a cancelled import leaves nothing, and progress ends where it says', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const controller = new AbortController();
  const onProgress = () => controller.abort();
  await assert.rejects(imported(folder, { signal: controller.signal, onProgress }), trawlError('CANCELLED'));
  assert.deepEqual(await readdir(join(folder, '..')), ['tiny']);
  const last = new Map<string, [number, number]>();
  await imported(folder, { onProgress: ({ stage, done, total }) => last.set(stage, [done, total]) });
  assert.deepEqual([...last.keys()], ['write float32', 'read', 'check float32']);
  for (const [done, total] of last.values()) assert.equal(done, total);
});

test('a folder with an exported graph is taken as it is', async (t) => {
  const folder = await transformersModel(t, 'all-minilm-like');
  const { description, folder: out } = await importModel(folder, { out: `${folder}-out` });
  assert.deepEqual([description.graph, description.dimension], [description.graphs![0], 10]);
  assert.deepEqual(await readFile(join(out, 'model.onnx')), await readFile(join(folder, 'onnx', 'model.onnx')));
  const before = await openEncoder(folder, { workers: 1 });
  const after = await openEncoder(out, { workers: 1 });
  const texts = ['the query', 'a passage of the'];
  const results = await Promise.all([before, after].map((encoder) => encoder.encode(texts, { kind: 'passage' })));
  assert.deepEqual(results[0]!.vectors, results[1]!.vectors);
  await Promise.all([before.close(), after.close()]);
  const other = importModel(folder, { out: `${folder}-int8`, precisions: ['int8'] });
  await assert.rejects(other, trawlError('CONFIG_INVALID', /has the precision float32, and int8 can be made/));
});

test('an exported graph with its weights beside it keeps them', async (t) => {
  const wide = { 'embeddings.word_embeddings.weight': [600_000, HIDDEN] };
  const { folder } = await tinyCheckpoint(t, { tensors: wide, config: { vocab_size: 600_000 } });
  const first = await imported(folder, { precisions: ['float16', 'float32'] });
  const second = await transformersModel(
    t,
    'exported',
    {
      'config.json': {
        model_type: 'mpnet',
        hidden_size: HIDDEN,
        max_position_embeddings: POSITIONS,
        vocab_size: 600_000,
      },
    },
    'unused.onnx',
  );
  for (const name of ['model.onnx', 'model.onnx.data']) {
    await writeFile(join(second, name), await readFile(join(first.folder, name)));
  }
  const { description, folder: out } = await importModel(second, { out: `${second}-out` });
  assert.deepEqual(description.graph, {
    path: 'model.onnx',
    precision: 'float32',
    output: 'last_hidden_state',
    externalData: ['model.onnx.data'],
  });
  assert.equal(await verifyModelFolder(await readModelFolder(out)), 3);
  await rm(join(second, 'model.onnx.data'));
  await assert.rejects(
    importModel(second, { out: `${second}-2` }),
    trawlError('MODEL_INVALID', /model\.onnx\.data is missing/),
  );
});

test('a graph that is damaged or of another kind is refused', async (t) => {
  const folder = await transformersModel(t, 'broken', {}, 'model.onnx');
  const good = await readFile(join(folder, 'model.onnx'));
  for (const [content, message] of [
    [Buffer.from('no graph'), /no ONNX file, or a damaged one/],
    [Buffer.alloc(0), /it has no graph/],
    [good.subarray(0, good.length / 2), /damaged/],
  ] as const) {
    await writeFile(join(folder, 'model.onnx'), content);
    await assert.rejects(importModel(folder, { out: `${folder}-out` }), trawlError('MODEL_INVALID', message));
  }
  await writeFile(
    join(folder, 'model.onnx'),
    Buffer.from(good.toString('latin1').replaceAll('input_ids', 'input_odd'), 'latin1'),
  );
  await assert.rejects(
    importModel(folder, { out: `${folder}-out` }),
    trawlError('MODEL_INVALID', /wants the inputs input_odd/),
  );
});
