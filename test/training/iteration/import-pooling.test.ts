import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ModelIdentity, Pooling } from '../../../src/encoder/identity/model-identity.ts';
import { readTrawlModelFile } from '../../../src/encoder/model/trawl-model-file.ts';
import { checkpointFiles, makeModel } from '../../../training/iteration/checkpoint.ts';
import { inheritedOverrides, poolingOfImport } from '../../../training/iteration/model-settings.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { tinyCheckpoint } from '../../indexer/model-import/tiny-checkpoint.ts';
import { TINY_QWEN3 } from '../../indexer/model-import/tiny-families.ts';
import { bertCheckpoint } from './checkpoints.ts';

/** The encoder of the index before. */
const base = (architecture: string, pooling: Pooling): ModelIdentity => ({ architecture, pooling }) as ModelIdentity;

/** A checkpoint with weights, as a trainer writes it. */
async function checkpoint(t: TestContext, config: string | object): Promise<string> {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'config.json'), typeof config === 'string' ? config : JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), '');
  return folder;
}

const QWEN3 = { architectures: ['Qwen3Model'], model_type: 'qwen3' };

test('a checkpoint of an architecture that also generates text is imported with the pooling of the index before', async (t) => {
  const folder = await checkpoint(t, QWEN3);
  const given = undefined;
  assert.equal(await poolingOfImport(folder, { given, base: base('qwen3', 'last') }), 'last');
  assert.equal(await poolingOfImport(folder, { given: 'mean', base: base('qwen3', 'last') }), 'mean');
  assert.equal(await poolingOfImport(folder, { given, base: null }), undefined);
  assert.equal(await poolingOfImport(folder, { given, base: base('qwen3', 'none') }), undefined);
  assert.equal(await poolingOfImport(folder, { given, base: base('bert', 'mean') }), undefined, 'another architecture');
  const t5 = await checkpoint(t, `\uFEFF${JSON.stringify({ architectures: ['T5EncoderModel'], model_type: 't5' })}`);
  assert.equal(await poolingOfImport(t5, { given, base: base('t5', 'mean') }), 'mean');
});

test('heads of other tasks, late interaction, models of images and graphs inherit no pooling, but an option states it', async (t) => {
  for (const [name, type] of [
    ['Qwen3ForCausalLM', 'qwen3'],
    ['ColBERTModel', 'qwen3'],
    ['BertForTokenClassification', 'bert'],
    ['BertModel', 'bert'],
    ['CLIPModel', 'clip'],
    ['GPT2LMHeadModel', 'gpt2'],
  ] as const) {
    const folder = await checkpoint(t, { architectures: [name], model_type: type });
    assert.equal(await poolingOfImport(folder, { given: undefined, base: base(type, 'last') }), undefined, name);
    assert.equal(await poolingOfImport(folder, { given: 'cls', base: base(type, 'last') }), 'cls', name);
  }
  const graph = await tempFolder(t);
  writeFileSync(join(graph, 'config.json'), JSON.stringify(QWEN3));
  assert.equal(await poolingOfImport(graph, { given: undefined, base: base('qwen3', 'last') }), undefined);
});

test('a config.json that cannot be read is left to the import', async (t) => {
  for (const config of [
    '{',
    'null',
    '{"architectures":5,"model_type":"qwen3"}',
    'version https://git-lfs.github.com/spec/v1',
  ]) {
    const folder = await checkpoint(t, config);
    assert.equal(await poolingOfImport(folder, { given: undefined, base: base('qwen3', 'last') }), undefined, config);
  }
});

test('a checkpoint that states its pooling is imported with no other, and one whose modules have none takes the option', async (t) => {
  const folder = await checkpoint(t, QWEN3);
  mkdirSync(join(folder, '1_Pooling'));
  writeFileSync(join(folder, '1_Pooling', 'config.json'), '{}');
  assert.equal(await poolingOfImport(folder, { given: 'cls', base: base('qwen3', 'last') }), undefined);
  const modules = await checkpoint(t, QWEN3);
  writeFileSync(
    join(modules, 'modules.json'),
    JSON.stringify([{ idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' }]),
  );
  assert.equal(await poolingOfImport(modules, { given: 'last', base: null }), 'last');
});

test('a Qwen3 that a trainer wrote becomes a model with the pooling of the index before, and is refused without one', async (t) => {
  const family = { ...TINY_QWEN3, files: {} };
  const { folder } = await tinyCheckpoint(t, { family, config: { architectures: ['Qwen3Model'] } });
  const out = join(await tempFolder(t), 'model');
  const { signal } = new AbortController();
  const files = await checkpointFiles(folder, signal);
  const step = { checkpoint: folder, files, out, precision: 'float32', signal, onProgress: () => undefined } as const;
  await assert.rejects(makeModel({ ...step, pooling: undefined }), trawlError('MODEL_INVALID', /--pooling last/));
  await makeModel({
    ...step,
    pooling: await poolingOfImport(folder, { given: undefined, base: base('qwen3', 'last') }),
  });
  assert.equal((await readTrawlModelFile(out)).pooling, 'last');
});

test('a checkpoint whose files state a pooling, and nothing else, keeps it and inherits the rest', async (t) => {
  const folder = await tempFolder(t);
  const checkpoint = bertCheckpoint(folder, 'trained', { modules: false });
  const out = join(folder, 'model');
  const { signal } = new AbortController();
  const before = {
    ...base('bert', 'mean'),
    dimension: 32,
    normalize: true,
    prefixes: { query: 'query: ', passage: 'passage: ' },
    maxTokens: { query: 64, passage: 64 },
  };
  const files = await checkpointFiles(checkpoint, signal);
  const step = { checkpoint, files, out, precision: 'float32', pooling: undefined, signal } as const;
  await makeModel({ ...step, onProgress: () => undefined });
  assert.equal((await inheritedOverrides(checkpoint, out, before)).pooling, 'mean');
  mkdirSync(join(checkpoint, '1_Pooling'));
  writeFileSync(join(checkpoint, '1_Pooling', 'config.json'), JSON.stringify({ pooling_mode_cls_token: true }));
  const overrides = await inheritedOverrides(checkpoint, out, before);
  assert.equal(overrides.pooling, undefined);
  assert.equal(overrides.queryPrefix, 'query: ');
});
