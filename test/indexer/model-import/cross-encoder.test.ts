import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { BERT, IDS, imported, MASK, ROBERTA, runGraph, TYPES } from './imported-model.ts';
import { ReferenceEncoder } from './reference-encoder.ts';
import { HIDDEN, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';

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
  test(`${architecture} is imported as a cross-encoder that computes the reference's logits`, async (t) => {
    const config = { architectures: [architecture], pad_token_id: options.modelType === undefined ? 0 : 1 };
    const checkpoint = await tinyCheckpoint(t, { ...options, config });
    const { folder, description } = await imported(checkpoint, { precisions: ['float32', 'int8'] });
    const bert = options.modelType === undefined;
    const reference = new ReferenceEncoder(checkpoint.tensors, bert ? BERT : ROBERTA);
    const { logits, ...others } = await runGraph(folder, 'model.onnx', bert ? 0 : 1);
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
