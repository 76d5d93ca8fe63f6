import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import { transformersModel, writeJson } from '../../encoder/model-fixtures.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { tinyCheckpoint } from './tiny-checkpoint.ts';

const MASKED = { config: { architectures: ['BertForMaskedLM'] } };
const SPLADE = [
  { path: '', type: 'sentence_transformers.sparse_encoder.models.MLMTransformer.MLMTransformer' },
  { path: '1_SpladePooling', type: 'sentence_transformers.sparse_encoder.models.SpladePooling' },
];
const DENSE = [
  { path: '', type: 'sentence_transformers.models.Transformer' },
  { path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
];
const REFUSED = /is a sparse encoder \(SPLADE\): .*dense vectors\. Use a dense encoder.*--bm25/s;

test('a sparse encoder of sentence-transformers is refused with what it is and what would fit', async (t) => {
  const { folder } = await tinyCheckpoint(t, MASKED);
  await writeJson(join(folder, 'modules.json'), SPLADE);
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', REFUSED));
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /the module .*\.MLMTransformer/));
  await writeJson(join(folder, 'modules.json'), [
    { path: '', type: 'sentence_transformers.base.modules.transformer.Transformer' },
    { path: '1_SpladePooling', type: 'sentence_transformers.somewhere.SpladePooling' },
  ]);
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /the module .*\.SpladePooling/));
});

test('a sparse encoder over a dense one is refused, also with its pooling and with a stated one', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode: 'mean' });
  await writeJson(join(folder, 'modules.json'), [
    ...DENSE,
    { path: '2_CSRSparsity', type: 'sentence_transformers.sparse_encoder.models.CSRSparsity' },
  ]);
  await assert.rejects(imported(folder, { pooling: 'mean' }), trawlError('MODEL_INVALID', REFUSED));
  await writeJson(join(folder, 'modules.json'), [{ path: '', type: 'sentence_transformers.models.Router' }]);
  await writeJson(join(folder, 'config_sentence_transformers.json'), { model_type: 'SparseEncoder' });
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /has the model_type "SparseEncoder"/));
});

test('a language model whose name is that of sparse encoders is refused, unless a pooling says that it is dense', async (t) => {
  const { folder } = await tinyCheckpoint(t, MASKED);
  for (const id of ['naver/splade_v2_max', 'opensearch-project/opensearch-neural-sparse-encoding-v1']) {
    const source = { kind: 'hub', id } as const;
    const message = new RegExp(`its name is ${id}, and config.json has the class BertForMaskedLM.*--pooling mean`, 's');
    await assert.rejects(imported(folder, { source }), trawlError('MODEL_INVALID', message));
    const stated = await imported(folder, { source, pooling: 'cls', out: `${folder}-${id.split('/')[0]}` });
    assert.equal(stated.description.pooling, 'cls');
  }
  await writeJson(join(folder, 'modules.json'), DENSE);
  await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode: 'mean' });
  const dense = await imported(folder, { source: { kind: 'hub', id: 'org/from-splade' } });
  assert.equal(dense.description.poolingFrom, 'checkpoint');
});

test('a sparse encoder of another architecture, and an exported graph of one, are refused as what they are', async (t) => {
  const config = { model_type: 'distilbert', architectures: ['DistilBertForMaskedLM'], dim: 10 };
  const other = await tinyCheckpoint(t, { config });
  const source = { kind: 'hub', id: 'naver/splade-v3-distilbert' } as const;
  await assert.rejects(imported(other, { source }), trawlError('MODEL_INVALID', REFUSED));
  const graph = await transformersModel(t, 'exported', { 'config.json': config, 'modules.json': SPLADE });
  await assert.rejects(importModel(graph, { out: `${graph}-out` }), trawlError('MODEL_INVALID', REFUSED));
});

test('an encoder with a name like that of sparse encoders, of the class of an encoder, is imported', async (t) => {
  const { description } = await imported(await tinyCheckpoint(t, { config: { architectures: ['BertModel'] } }), {
    source: { kind: 'hub', id: 'org/dense-from-splade' },
  });
  assert.equal(description.kind, 'encoder');
});
