import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import { openEncoder } from '../../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { transformersModel, writeJson } from '../../encoder/model-fixtures.ts';
import { encodeSafetensors, float32Bytes } from '../../helpers/safetensors.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { modernBert } from './reference-families.ts';
import { HIDDEN, type TinyCheckpoint, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_MODERNBERT } from './tiny-families.ts';

const TRANSFORMER = { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' };
const PYLATE = [TRANSFORMER, { idx: 1, name: '1', path: '1_Dense', type: 'pylate.models.Dense.Dense' }];

/** A ModernBERT as PyLate saves it: a Dense module gives every token 5 values. */
async function pylateCheckpoint(t: TestContext, modules: readonly object[] = PYLATE): Promise<TinyCheckpoint> {
  const files = {
    'modules.json': modules,
    '1_Dense/config.json': {
      in_features: HIDDEN,
      out_features: 5,
      bias: false,
      activation_function: 'torch.nn.modules.linear.Identity',
    },
    'config_sentence_transformers.json': {
      similarity_fn_name: 'MaxSim',
      query_prefix: '[Q] ',
      document_prefix: '[D] ',
    },
  };
  const checkpoint = await tinyCheckpoint(t, { family: { ...TINY_MODERNBERT, files } });
  const weight = Float32Array.from({ length: 5 * HIDDEN }, (_, i) => Math.cos(i));
  const tensors = { 'linear.weight': { dtype: 'F32', shape: [5, HIDDEN], bytes: float32Bytes(weight) } };
  await writeFile(join(checkpoint.folder, '1_Dense', 'model.safetensors'), encodeSafetensors(tensors));
  return checkpoint;
}

const REFUSED = /late-interaction model \(ColBERT\): .*An encoder would fit.*trawl model add SOURCE --pooling mean/s;

test('a late-interaction model is refused with what it is and what would fit', async (t) => {
  const pylate = await pylateCheckpoint(t);
  await assert.rejects(imported(pylate), trawlError('MODEL_INVALID', REFUSED));
  await assert.rejects(imported(pylate), trawlError('MODEL_INVALID', /module pylate\.models\.Dense\.Dense/));
  const other = await pylateCheckpoint(t, [
    TRANSFORMER,
    { path: '1_Dense', type: 'sentence_transformers.models.Dense' },
  ]);
  await assert.rejects(imported(other), trawlError('MODEL_INVALID', /a Dense module and no Pooling/));
  const masked = await pylateCheckpoint(t, [
    TRANSFORMER,
    { path: '1_Dense', type: 'sentence_transformers.sentence_transformer.modules.dense.Dense' },
    { path: '2_MultiVectorMask', type: 'sentence_transformers.multi_vec_encoder.modules.MultiVectorMask' },
  ]);
  await assert.rejects(imported(masked), trawlError('MODEL_INVALID', /MultiVectorMask/));
  const plain = await pylateCheckpoint(t);
  await rm(join(plain.folder, 'modules.json'));
  await assert.rejects(imported(plain), trawlError('MODEL_INVALID', /its similarity is "MaxSim"/));
  await rm(join(plain.folder, 'config_sentence_transformers.json'));
  await writeFile(join(plain.folder, 'artifact.metadata'), '{}');
  await assert.rejects(imported(plain), trawlError('MODEL_INVALID', /artifact\.metadata/));
  const stanford = await tinyCheckpoint(t, {
    prefix: 'bert.',
    tensors: { 'linear.weight': [5, HIDDEN] },
    config: { architectures: ['HF_ColBERT'] },
  });
  await assert.rejects(imported(stanford), trawlError('MODEL_INVALID', /the class HF_ColBERT/));
});

test('an exported graph of a late-interaction model is refused, too', async (t) => {
  const files = { 'config.json': { model_type: 'bert', hidden_size: 10 }, 'modules.json': PYLATE };
  const folder = await transformersModel(t, 'colbert', files);
  await assert.rejects(importModel(folder, { out: `${folder}-out` }), trawlError('MODEL_INVALID', REFUSED));
});

test('the encoder under a late-interaction head is imported where the folder states a pooling', async (t) => {
  const checkpoint = await pylateCheckpoint(t);
  await writeJson(join(checkpoint.folder, '1_Pooling', 'config.json'), { pooling_mode: 'cls' });
  const { folder, description, remarks } = await imported(checkpoint, { precisions: ['float32', 'int8'] });
  assert.match(remarks.at(-1)!, /only the encoder under the head .* measure their recall first/);
  assert.deepEqual([description.dimension, description.pooling, description.normalize], [HIDDEN, 'cls', true]);
  const tokenizer = await TextTokenizer.load(join(folder, 'tokenizer.json'));
  const [first] = modernBert(checkpoint.tensors, tokenizer.frame(tokenizer.contentIds('what is the query', 99)));
  const encoder = await openEncoder(folder, { workers: 1, precision: 'float32' });
  const { vectors } = await encoder.encode(['what is the query'], { inputType: 'passage' });
  await encoder.close();
  assert.ok(first!.every((value, i) => Math.abs(value / Math.hypot(...first!) - vectors[i]!) < 1e-5));
});

test('a stated pooling imports the encoder under the head of a folder without one, as 1_Pooling does', async (t) => {
  const checkpoint = await pylateCheckpoint(t);
  const { description, remarks } = await imported(checkpoint, { pooling: 'mean' });
  assert.deepEqual(
    [description.dimension, description.pooling, description.poolingFrom, description.normalize],
    [HIDDEN, 'mean', 'option', true],
  );
  assert.match(remarks.join(), /only the encoder under the head/);
  await writeJson(join(checkpoint.folder, '1_Pooling', 'config.json'), { pooling_mode: 'mean' });
  const stated = await importModel(checkpoint.folder, { out: `${checkpoint.folder}-stated`, precisions: ['float32'] });
  const graphOf = ({ description: { files } }: typeof stated) => files.map(({ sha256 }) => sha256);
  assert.deepEqual(
    graphOf(stated),
    description.files.map(({ sha256 }) => sha256),
  );
  assert.equal(stated.description.poolingFrom, 'checkpoint');
});

test('a stated pooling other than that of a late-interaction folder is refused', async (t) => {
  const checkpoint = await pylateCheckpoint(t);
  await writeJson(join(checkpoint.folder, '1_Pooling', 'config.json'), { pooling_mode: 'cls' });
  await assert.rejects(
    imported(checkpoint, { pooling: 'mean' }),
    trawlError('CONFIG_INVALID', /--pooling is mean, but .*states the pooling cls/),
  );
});

test('a stated pooling imports the exported encoder of a late-interaction model', async (t) => {
  const files = { 'config.json': { model_type: 'bert', hidden_size: 10 }, 'modules.json': PYLATE };
  const folder = await transformersModel(t, 'colbert', files);
  const { description } = await importModel(folder, { out: `${folder}-out`, pooling: 'mean' });
  assert.deepEqual([description.dimension, description.pooling, description.poolingFrom], [10, 'mean', 'option']);
});
