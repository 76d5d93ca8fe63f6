import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import type { TrawlError } from '../../../src/base/errors.ts';
import { FileLock } from '../../../src/base/system/file-lock.ts';
import { readModelFolder, verifyModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { fixture, writeJson } from '../../encoder/model-fixtures.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { BERT, difference, IDS, imported, MASK, ROBERTA, runGraph, TYPES, ZEROS } from './imported-model.ts';
import { geluTanh, ReferenceEncoder, relu } from './reference-encoder.ts';
import { HIDDEN, POSITIONS, type TinyOptions, tinyCheckpoint, VOCABULARY } from './tiny-checkpoint.ts';

const MODELS: readonly [string, TinyOptions, ConstructorParameters<typeof ReferenceEncoder>[1]][] = [
  ['BERT', {}, BERT],
  ['BERT in float16', { dtype: 'F16' }, BERT],
  ['BERT in bfloat16', { dtype: 'BF16' }, BERT],
  ['BERT in three shards', { shards: 3 }, BERT],
  ['BERT under a head', { prefix: 'bert.', tensors: { 'cls.predictions.bias': [VOCABULARY] } }, BERT],
  ['BERT under another prefix', { prefix: 'model.encoder_q.' }, BERT],
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
  test(`${name}: the graph computes the reference's vectors, with and without padding`, async (t) => {
    const checkpoint = await tinyCheckpoint(t, options);
    const { folder, description } = await imported(checkpoint);
    const { last_hidden_state: hidden, pooler_output: pooled } = await runGraph(
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

test('the old tensor names gamma and beta are accepted, and the pooler is optional', async (t) => {
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
  const outputs = await runGraph(folder, 'model.onnx');
  assert.deepEqual(Object.keys(outputs), ['last_hidden_state']);
  assert.ok(
    difference(new ReferenceEncoder(checkpoint.tensors, BERT), outputs.last_hidden_state!.data, TYPES, 0) < 5e-6,
  );
});

test('a checkpoint is imported in several precisions, each close to the reference', async (t) => {
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
    const { last_hidden_state: hidden } = await runGraph(folder, path);
    const worst = difference(reference, hidden!.data, TYPES, 0);
    assert.ok(worst < most, `${path}: ${worst}`);
    assert.ok(path === 'model.onnx' || worst > 1e-5, `${path} is as exact as float32`);
  }
});

test('an imported model opens in each of its precisions, with the identity of the chosen graph', async (t) => {
  const checkpoint = await tinyCheckpoint(t);
  const { folder } = await imported(checkpoint, { precisions: ['float32', 'int8'], name: 'tiny-one' });
  const byDefault = await readModelFolder(folder);
  const int8 = await readModelFolder(folder, {}, { precision: 'int8' });
  assert.deepEqual([byDefault.identity.precision, int8.identity.precision], ['float32', 'int8']);
  assert.deepEqual([byDefault.identity.name, byDefault.precisions], ['tiny-one', ['float32', 'int8']]);
  assert.notEqual(byDefault.identity.sha256, int8.identity.sha256);
  assert.equal(byDefault.identity.sourceSha256, int8.identity.sourceSha256);
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
  const { vectors } = await encoder.encode(['what is the query'], { inputType: 'query' });
  assert.ok(Math.abs(vectors.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-6);
  await encoder.close();
});

test('the checksum of the weights depends on the weights and not on the imported precisions', async (t) => {
  const one = await imported(await tinyCheckpoint(t), { precisions: ['int8'] });
  const same = await imported(await tinyCheckpoint(t));
  const other = await imported(await tinyCheckpoint(t, { dtype: 'F16' }));
  assert.equal(one.description.weightsSha256, same.description.weightsSha256);
  assert.notEqual(other.description.weightsSha256, same.description.weightsSha256);
});

test('large weights are written beside the graph and are part of the identity', async (t) => {
  const wide = { 'embeddings.word_embeddings.weight': [600_000, HIDDEN] };
  const checkpoint = await tinyCheckpoint(t, { tensors: wide, config: { vocab_size: 600_000 } });
  const { folder, description } = await imported(checkpoint);
  assert.deepEqual(description.graph.externalData, ['model.onnx.data']);
  const { last_hidden_state: hidden } = await runGraph(folder, 'model.onnx');
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

test('vocab.txt becomes the tokenizer that Transformers makes from it', async (t) => {
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

test('prefixes and pooling come from the files, or else from the model family in the source id', async (t) => {
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

test('an existing folder is not overwritten, and the remains of an interrupted import are removed', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  await mkdir(`${folder}-out.partial`);
  await writeFile(join(`${folder}-out.partial`, 'model.onnx'), 'half');
  await imported(folder);
  assert.ok(!existsSync(`${folder}-out.partial`));
  await assert.rejects(imported(folder), trawlError('OUTPUT_NOT_WRITABLE', /already exists/));
  await assert.rejects(importModel(join(folder, 'no'), { out: join(folder, 'x') }), trawlError('MODEL_NOT_FOUND'));
  const wrong = importModel(folder, { out: `${folder}-2`, precisions: ['int8', 'int8'] });
  await assert.rejects(wrong, trawlError('CONFIG_INVALID', /each at most once/));
});

test('a second import into the same folder at the same time is refused, and the first one succeeds', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const busy = (error: TrawlError): boolean =>
    trawlError('MODEL_LOCKED', /Another process is writing /)(error) && error.details.folder === `${folder}-out`;
  let second: Promise<void> | undefined;
  await imported(folder, { onProgress: () => (second ??= assert.rejects(imported(folder), busy)) });
  await second;
  await readModelFolder(`${folder}-out`);
  assert.deepEqual((await readdir(join(folder, '..'))).sort(), ['tiny', 'tiny-out']);
});

test('a cancelled import leaves no files, and every stage of the progress reaches its total', async (t) => {
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

test('without space for the lock file the import fails with DISK_FULL', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  t.mock.method(FileLock, 'acquire', () => {
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
  });
  await assert.rejects(imported(folder), trawlError('DISK_FULL', /\.lock: no space left on the disk/));
});

test('weights, config and tokenizer are read from the folder that modules.json names', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  const whole = await imported(folder, { out: `${folder}-whole` });
  const inner = join(folder, '0_Transformer');
  await mkdir(inner);
  for (const name of await readdir(folder))
    if (name !== '0_Transformer') await rename(join(folder, name), join(inner, name));
  const module = (type: string, path: string) => ({ type: `sentence_transformers.models.${type}`, path });
  const modules = (path: string) =>
    writeJson(join(folder, 'modules.json'), [module('Transformer', path), module('Pooling', '1_Pooling')]);
  await modules('0_Transformer');
  await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode: 'cls' });
  await writeJson(join(inner, 'sentence_bert_config.json'), { max_seq_length: 12 });
  const { description } = await imported(folder);
  assert.equal(description.pooling, 'cls');
  assert.equal(description.maxTokens.passage, 12);
  assert.equal(description.weightsSha256, whole.description.weightsSha256);
  await modules('../elsewhere');
  await assert.rejects(
    imported(folder, { out: `${folder}-none` }),
    trawlError('MODEL_INVALID', /path of the Transformer module must be inside/),
  );
});

test('a tokenizer is written as transformers and sentence-transformers use it', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  let count = 0;
  const normalizerWith = async (files: Record<string, object>) => {
    for (const name of ['tokenizer_config.json', 'sentence_bert_config.json'])
      await writeJson(join(folder, name), files[name] ?? {});
    const { folder: made } = await imported(folder, { out: `${folder}-${count++}` });
    const written = JSON.parse(await readFile(join(made, 'tokenizer.json'), 'utf8')) as { normalizer: object };
    return written.normalizer;
  };
  const own = (JSON.parse(await readFile(fixture('tokenizer.json'), 'utf8')) as { normalizer: object }).normalizer;
  const cased = { ...own, strip_accents: null, lowercase: false };
  assert.deepEqual(await normalizerWith({}), own);
  assert.deepEqual(await normalizerWith({ 'tokenizer_config.json': { do_lower_case: false } }), cased);
  const other = { do_lower_case: false, tokenizer_class: 'PreTrainedTokenizerFast' };
  assert.deepEqual(await normalizerWith({ 'tokenizer_config.json': other }), own);
  assert.deepEqual(
    await normalizerWith({
      'tokenizer_config.json': { do_lower_case: false },
      'sentence_bert_config.json': { do_lower_case: true },
    }),
    { type: 'Sequence', normalizers: [{ type: 'Lowercase' }, cased] },
  );

  // transformers 5 would not use the words of this file.
  const path = join(folder, 'tokenizer.json');
  const file = JSON.parse(await readFile(path, 'utf8')) as object;
  await writeJson(path, { ...file, pre_tokenizer: { type: 'Whitespace' } });
  assert.deepEqual(await normalizerWith({ 'tokenizer_config.json': other }), own);
  await assert.rejects(
    normalizerWith({ 'tokenizer_config.json': { tokenizer_class: 'BertTokenizerFast' } }),
    trawlError(
      'MODEL_INVALID',
      /tokenizer_class is "BertTokenizerFast".*BertNormalizer and Whitespace of tokenizer\.json/s,
    ),
  );
});
