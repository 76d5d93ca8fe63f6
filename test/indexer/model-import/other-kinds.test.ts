import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import { transformersModel, writeJson } from '../../encoder/model-fixtures.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_MODERNBERT, TINY_QWEN3, TINY_T5 } from './tiny-families.ts';

const MODULES = [
  { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
  { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
];
const FITTING = 'An encoder would fit, for example intfloat/e5-base-v2.*trawl model add SOURCE --pooling mean';

/** A model for named entities with nine labels. */
const NER: TinyOptions = {
  prefix: 'bert.',
  tensors: { 'classifier.weight': [9, HIDDEN], 'classifier.bias': [9] },
  config: { architectures: ['BertForTokenClassification'], num_labels: 9 },
};

for (const [name, options, what] of [
  ['BertForTokenClassification', NER, 'a token classifier, which labels every token'],
  [
    'BertForQuestionAnswering',
    { prefix: 'bert.', tensors: { 'qa_outputs.weight': [2, HIDDEN], 'qa_outputs.bias': [2] } },
    'a model of extractive question answering',
  ],
  ['DPRReader', { modelType: 'dpr' }, 'a model of extractive question answering'],
  ['RobertaForMultipleChoice', { modelType: 'roberta' }, 'a multiple-choice model'],
  ['BertForNextSentencePrediction', {}, 'a model that says whether one sentence follows another'],
  ['ModernBertForTokenClassification', { family: TINY_MODERNBERT }, 'a token classifier'],
  // Its folder states no pooling in these tests: the options replace its files.
  ['Qwen3ForTokenClassification', { family: { ...TINY_QWEN3, files: {} } }, 'a token classifier'],
  ['T5ForQuestionAnswering', { family: { ...TINY_T5, files: {} } }, 'a model of extractive question answering'],
] as const satisfies readonly (readonly [string, TinyOptions, string])[]) {
  test(`a checkpoint of the class ${name} is refused with what it is and what would fit, and nothing is written`, async (t) => {
    const { folder } = await tinyCheckpoint(t, { ...options, config: { architectures: [name] } });
    const message = new RegExp(`the model \\(${name}\\) is ${what}.*${FITTING}`, 's');
    await assert.rejects(imported(folder), trawlError('MODEL_INVALID', message));
    assert.deepEqual(await readdir(join(folder, '..')), ['tiny']);
  });
}

test('a name of a family of encoders does not make an encoder of a token classifier that was trained from it', async (t) => {
  const { folder } = await tinyCheckpoint(t, {
    ...NER,
    config: { ...NER.config, _name_or_path: 'intfloat/e5-base-v2' },
  });
  const source = { kind: 'hub', id: 'org/e5-base-ner' } as const;
  await assert.rejects(imported(folder, { source }), trawlError('MODEL_INVALID', /a token classifier/));
  const qwen3 = { family: { ...TINY_QWEN3, files: {} }, config: { architectures: ['Qwen3ForTokenClassification'] } };
  const named = { source: { kind: 'hub', id: 'org/Qwen3-Embedding-0.6B-ner' } } as const;
  await assert.rejects(imported(await tinyCheckpoint(t, qwen3), named), trawlError('MODEL_INVALID', /a token classif/));
});

test('modules.json without a pooling does not make an encoder of a token classifier', async (t) => {
  const { folder } = await tinyCheckpoint(t, NER);
  await writeJson(join(folder, 'modules.json'), MODULES.slice(0, 1));
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', /a token classifier/));
});

test('a folder of sentence-transformers is an encoder, whatever the class that its config kept', async (t) => {
  for (const className of ['BertForTokenClassification', 'BertForMaskedLM', 'BertLMHeadModel']) {
    const { folder } = await tinyCheckpoint(t, { config: { architectures: [className] } });
    await writeJson(join(folder, 'modules.json'), MODULES);
    await writeJson(join(folder, '1_Pooling', 'config.json'), { pooling_mode: 'cls' });
    const { description, remarks } = await imported(folder);
    assert.deepEqual(
      [description.kind, description.pooling, description.poolingFrom, remarks],
      ['encoder', 'cls', 'checkpoint', []],
    );
  }
});

test('an encoder that has a head of another task beside it, as gte-multilingual-base has, is an encoder', async (t) => {
  const architectures = ['BertModel', 'BertForTokenClassification'];
  const { description } = await imported(await tinyCheckpoint(t, { config: { architectures } }));
  assert.deepEqual([description.kind, description.pooling], ['encoder', 'mean']);
});

test('a checkpoint of BERT that generates text is refused with the pooling that it would need', async (t) => {
  const { folder } = await tinyCheckpoint(t, { config: { architectures: ['BertLMHeadModel'] } });
  const message = /BertLMHeadModel.*a causal language model.*--pooling last/s;
  await assert.rejects(imported(folder), trawlError('MODEL_INVALID', message));
});

test('an exported graph of a token classifier is refused with what it is, also if it returns vectors of tokens', async (t) => {
  const config = { model_type: 'electra', architectures: ['ElectraForTokenClassification'], hidden_size: 10 };
  const folder = await transformersModel(t, 'ner', { 'config.json': config });
  const message = new RegExp(`ElectraForTokenClassification\\) is a token classifier.*${FITTING}`, 's');
  await assert.rejects(importModel(folder, { out: `${folder}-out` }), trawlError('MODEL_INVALID', message));
  const { description } = await importModel(folder, { out: `${folder}-out`, pooling: 'cls' });
  assert.deepEqual([description.pooling, description.poolingFrom], ['cls', 'option']);
});

test('config.json without class names, or with none that is known, is that of an encoder', async (t) => {
  for (const architectures of [undefined, null, [], ['Contriever'], 'BertForTokenClassification']) {
    const { description } = await imported(await tinyCheckpoint(t, { config: { architectures } }));
    assert.equal(description.kind, 'encoder');
  }
});

test('an exported graph of a vision model is refused also if its folder states a pooling, unless the user does', async (t) => {
  const files = {
    'config.json': { model_type: 'some_vl', architectures: ['SomeVLModel'], vision_config: {}, hidden_size: 10 },
    '1_Pooling/config.json': { pooling_mode: 'lasttoken' },
  };
  const folder = await transformersModel(t, 'vision', files);
  const message = /\(SomeVLModel\) is a vision model, which takes images\. An encoder would fit/;
  await assert.rejects(importModel(folder, { out: `${folder}-out` }), trawlError('MODEL_INVALID', message));
  const { description } = await importModel(folder, { out: `${folder}-out`, pooling: 'last' });
  assert.equal(description.pooling, 'last');
});
