import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import type { StatedPooling } from '../../../src/encoder/model/transformers-folder.ts';
import { transformersModel, writeJson } from '../../encoder/model-fixtures.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_QWEN3, TINY_T5 } from './tiny-families.ts';

test('a pooling that is stated for a checkpoint without one is that of the model, which records where it is from', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  for (const pooling of ['mean', 'cls', 'last'] as const) {
    const { description, remarks } = await imported(folder, { pooling, out: `${folder}-${pooling}` });
    assert.deepEqual([description.pooling, description.poolingFrom, remarks], [pooling, 'option', []]);
  }
});

test('an assumed pooling is recorded as assumed, with a note that says how to state another one', async (t) => {
  const { description, remarks } = await imported(
    await tinyCheckpoint(t, { config: { architectures: ['BertModel'] } }),
  );
  assert.deepEqual([description.pooling, description.poolingFrom, remarks.length], ['mean', 'assumed', 1]);
  assert.match(remarks[0]!, /^the pooling mean is assumed: .*1_Pooling\/config\.json.*--pooling \(mean, cls or last\)/);
  assert.doesNotMatch(remarks[0]!, /masked words/);
});

test('of a language model with masked words the note also says that it may not be trained for search', async (t) => {
  for (const className of ['BertForMaskedLM', 'BertForPreTraining']) {
    const { remarks } = await imported(await tinyCheckpoint(t, { config: { architectures: [className] } }));
    assert.match(remarks[0]!, new RegExp(`is assumed.*${className} is a model .*masked words.*An encoder would fit`));
  }
});

test('a pooling that the name tells is recorded so, without a note, and a stated one comes before it', async (t) => {
  const { folder } = await tinyCheckpoint(t, { config: { architectures: ['BertForMaskedLM'] } });
  const source = { kind: 'hub', id: 'BAAI/bge-small-en-v1.5' } as const;
  const named = await imported(folder, { source });
  assert.deepEqual([named.description.pooling, named.description.poolingFrom, named.remarks], ['cls', 'name', []]);
  const stated = await imported(folder, { source, pooling: 'mean', out: `${folder}-stated` });
  assert.deepEqual([stated.description.pooling, stated.description.poolingFrom], ['mean', 'option']);
});

test('a stated pooling that the folder states too is accepted, another one is refused before anything is written', async (t) => {
  const { folder } = await tinyCheckpoint(t);
  await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode_cls_token: true });
  await assert.rejects(
    imported(folder, { pooling: 'mean' }),
    trawlError(
      'CONFIG_INVALID',
      /--pooling is mean, but .*1_Pooling\/config\.json states the pooling cls\. Leave out --pooling; .*trawl index/,
    ),
  );
  assert.deepEqual(await readdir(join(folder, '..')), ['tiny']);
  const { description } = await imported(folder, { pooling: 'cls' });
  assert.deepEqual([description.pooling, description.poolingFrom], ['cls', 'checkpoint']);
});

test('a language model becomes an encoder with a stated pooling', async (t) => {
  for (const [family, pooling] of [
    [TINY_QWEN3, 'last'],
    [TINY_T5, 'mean'],
  ] as const) {
    const checkpoint = await tinyCheckpoint(t, { family: { ...family, files: {} } });
    const { description } = await imported(checkpoint, { pooling });
    assert.deepEqual([description.kind, description.pooling, description.poolingFrom], ['encoder', pooling, 'option']);
  }
});

test('DPR has the pooling of its class: it may be stated, and another one is refused', async (t) => {
  const { folder } = await tinyCheckpoint(t, { modelType: 'dpr', config: { projection_dim: 0 } });
  await assert.rejects(
    imported(folder, { pooling: 'mean' }),
    trawlError('CONFIG_INVALID', /--pooling is mean, but the pooling of DPR \(.*\) is cls/),
  );
  const { description, remarks } = await imported(folder, { pooling: 'cls' });
  assert.deepEqual([description.pooling, description.poolingFrom, remarks], ['cls', 'checkpoint', []]);
});

test('a pooling for a cross-encoder, and one that no checkpoint has, are refused', async (t) => {
  const { folder } = await tinyCheckpoint(t, {
    prefix: 'bert.',
    tensors: { 'classifier.weight': [1, HIDDEN], 'classifier.bias': [1] },
    config: { architectures: ['BertForSequenceClassification'] },
  });
  const message = /--pooling is cls, but .*config\.json describes a cross-encoder.*Leave out --pooling/;
  await assert.rejects(imported(folder, { pooling: 'cls' }), trawlError('CONFIG_INVALID', message));
  for (const pooling of ['pooler', 'none', 'max', '']) {
    await assert.rejects(
      imported(folder, { pooling: pooling as StatedPooling }),
      trawlError('CONFIG_INVALID', /pooling is ".*"; it must be one of mean, cls, last/),
    );
  }
});

test('a stated pooling is that of a copied graph of token vectors too', async (t) => {
  const folder = await transformersModel(t, 'exported');
  const assumed = await importModel(folder, { out: `${folder}-assumed` });
  assert.deepEqual([assumed.description.poolingFrom, assumed.remarks.length], ['assumed', 1]);
  const { description, remarks } = await importModel(folder, { out: `${folder}-last`, pooling: 'last' });
  assert.deepEqual([description.pooling, description.poolingFrom, remarks], ['last', 'option', []]);
});
