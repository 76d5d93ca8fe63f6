import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import { OnnxGraph } from '../../../indexer/model-import/onnx-graph.ts';
import { writeOnnx } from '../../../indexer/model-import/onnx-writer.ts';
import { readModelFolder, verifyModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { ONNX_TYPES } from '../../../src/encoder/model/onnx-messages.ts';
import { openEncoder, openModelEncoder } from '../../../src/encoder/open-encoder.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import { transformersModel } from '../../encoder/model-fixtures.ts';
import { assertNoticesTruncation } from '../../encoder/tiny-bert.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { imported } from './imported-model.ts';
import { HIDDEN, POSITIONS, tinyCheckpoint } from './tiny-checkpoint.ts';

test('an exported graph is copied unchanged, in its own precision only', async (t) => {
  const folder = await transformersModel(t, 'all-minilm-like');
  const { description, folder: out } = await importModel(folder, { out: `${folder}-out` });
  assert.deepEqual([description.graph, description.dimension], [description.graphs![0], 10]);
  assert.deepEqual(await readFile(join(out, 'model.onnx')), await readFile(join(folder, 'onnx', 'model.onnx')));
  const before = await openEncoder(folder, { workers: 1 });
  const after = await openEncoder(out, { workers: 1 });
  const texts = ['the query', 'a passage of the'];
  const results = await Promise.all([before, after].map((encoder) => encoder.encode(texts, { inputType: 'passage' })));
  assert.deepEqual(results[0]!.vectors, results[1]!.vectors);
  await Promise.all([before.close(), after.close()]);
  const other = importModel(folder, { out: `${folder}-int8`, precisions: ['int8'] });
  await assert.rejects(other, trawlError('CONFIG_INVALID', /has the precision float32\. int8 can only be made/));
});

test('an exported graph is copied with its external weights', async (t) => {
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
  await assertNoticesTruncation(t, out, 'float32', 'model.onnx.data');
  await rm(join(second, 'model.onnx.data'));
  await assert.rejects(
    importModel(second, { out: `${second}-2` }),
    trawlError('MODEL_INVALID', /model\.onnx\.data is missing/),
  );
});

/**
 * Writes a graph with the inputs and outputs of an exported decoder. A token's vector is its row of a table, plus its position, plus
 * the number of earlier tokens, which is 0. `pools`: the graph returns the vector of the last column, as exporters do that pad on the left.
 */
async function writeDecoder(
  path: string,
  past: 'float32' | 'float16',
  { heads = 2, pools = false }: { heads?: number | string; pools?: boolean } = {},
): Promise<void> {
  const graph = new OnnxGraph('decoder');
  const rows = 119;
  const ids = graph.input('input_ids', 'int64', ['batch', 'sequence']);
  const mask = graph.input('attention_mask', 'int64', ['batch', 'total']);
  const positions = graph.input('position_ids', 'int64', ['batch', 'sequence']);
  const key = graph.input('past_key_values.0.key', past, ['batch', heads, 'past', 8]);
  graph.input('past_key_values.0.value', past, ['batch', heads, 'past', 8]);
  const table = graph.floats(
    Array.from({ length: rows * HIDDEN }, (_, i) => Math.sin(i)),
    [rows, HIDDEN],
  );
  const toFloat = { attributes: { to: ONNX_TYPES.float32.code } };
  const earlier = graph.node('Cast', [graph.node('Shape', [key], { attributes: { start: 2, end: 3 } })], toFloat);
  const attended = graph.node('Cast', [graph.node('Unsqueeze', [mask, graph.integers([2])])], toFloat);
  const place = graph.node('Cast', [graph.node('Unsqueeze', [positions, graph.integers([2])])], toFloat);
  const shift = graph.node('Mul', [attended, graph.node('Add', [place, earlier])]);
  const looked = graph.node('Gather', [table, ids]);
  if (pools) {
    const last = graph.node('Gather', [graph.node('Add', [looked, shift]), graph.integers([-1])], {
      attributes: { axis: 1 },
    });
    const pooled = graph.node('Squeeze', [last, graph.integers([1])], { output: 'sentence_embedding' });
    graph.output(pooled, 'float32', ['batch', HIDDEN]);
  } else {
    const hidden = graph.node('Add', [looked, shift], { output: 'last_hidden_state' });
    graph.output(hidden, 'float32', ['batch', 'sequence', HIDDEN]);
  }
  await writeOnnx(path, graph);
}

const DECODER_FILES = {
  'config.json': {
    model_type: 'qwen3',
    architectures: ['Qwen3ForCausalLM'],
    hidden_size: HIDDEN,
    max_position_embeddings: POSITIONS,
    vocab_size: 119,
  },
  '1_Pooling/config.json': { pooling_mode: 'lasttoken' },
};

for (const past of ['float32', 'float16'] as const) {
  test(`an exported decoder gets positions and no earlier tokens: ${past}`, async (t) => {
    const folder = await transformersModel(t, 'decoder', DECODER_FILES, 'unused.onnx');
    await writeDecoder(join(folder, 'model.onnx'), past);
    const { folder: out, description } = await importModel(folder, { out: `${folder}-out` });
    assert.equal(description.pooling, 'last');
    const tokenizer = await TextTokenizer.load(join(out, 'tokenizer.json'));
    const ids = tokenizer.frame(tokenizer.contentIds('what is the query', 99));
    const last = Array.from({ length: HIDDEN }, (_, i) => Math.sin(ids.at(-1)! * HIDDEN + i) + ids.length - 1);
    const encoder = await openEncoder(out, { workers: 1 });
    const { vectors } = await encoder.encode(['what is the query'], { inputType: 'passage' });
    await encoder.close();
    assert.ok(last.every((value, i) => Math.abs(value / Math.hypot(...last) - vectors[i]!) < 1e-5));
  });
}

test('a graph that takes the last column, for padding on the left, gives every text of a batch its own last token', async (t) => {
  const folder = await transformersModel(t, 'decoder', DECODER_FILES, 'unused.onnx');
  await writeDecoder(join(folder, 'model.onnx'), 'float32', { pools: true });
  const { folder: out, description } = await importModel(folder, { out: `${folder}-out` });
  assert.equal(description.pooling, 'none');
  const tokenizer = await TextTokenizer.load(join(out, 'tokenizer.json'));
  // Many lengths, and several texts of each, which run together.
  const texts = Array.from({ length: 60 }, (_, i) => [...'abcdefghijklmnop'.slice(i % 5, 2 + (i % 14))].join(' '));
  const encoder = await openEncoder(out, { workers: 2 });
  t.after(() => encoder.close());
  const { vectors } = await encoder.encode(texts, { inputType: 'passage' });
  for (const [text, words] of texts.entries()) {
    const ids = tokenizer.frame(tokenizer.contentIds(words, 99));
    const last = Array.from({ length: HIDDEN }, (_, i) => Math.sin(ids.at(-1)! * HIDDEN + i) + ids.length - 1);
    const own = vectors.subarray(text * HIDDEN, (text + 1) * HIDDEN);
    assert.ok(
      last.every((value, i) => Math.abs(value / Math.hypot(...last) - own[i]!) < 1e-5),
      words,
    );
  }
});

test('a graph that takes the last column is refused where batches are padded on the right, and one with pooling `last` is not', async (t) => {
  for (const pools of [true, false]) {
    const folder = await transformersModel(t, 'decoder', DECODER_FILES, 'unused.onnx');
    await writeDecoder(join(folder, 'model.onnx'), 'float32', { pools });
    const { folder: out } = await importModel(folder, { out: `${folder}-out` });
    const opening = openModelEncoder({ model: await readModelFolder(out), workers: 1, batchTokens: 512 });
    if (pools) await assert.rejects(opening, trawlError('MODEL_INVALID', /pads it on the right.*--device cpu/));
    else await (await opening).close();
  }
});

test('an exported decoder without a pooling, or with a variable number of heads, is refused', async (t) => {
  const { '1_Pooling/config.json': _, ...files } = DECODER_FILES;
  const generating = await transformersModel(t, 'generating', files, 'unused.onnx');
  await writeDecoder(join(generating, 'model.onnx'), 'float32');
  const message = /Qwen3ForCausalLM.*a causal language model/;
  await assert.rejects(importModel(generating, { out: `${generating}-out` }), trawlError('MODEL_INVALID', message));
  const variable = await transformersModel(t, 'variable', DECODER_FILES, 'unused.onnx');
  await writeDecoder(join(variable, 'model.onnx'), 'float32', { heads: 'heads' });
  await assert.rejects(
    importModel(variable, { out: `${variable}-out` }),
    trawlError('MODEL_INVALID', /past_key_values\.0\.key \(float32\).*with fixed heads/),
  );
});

test('a damaged graph and a graph with unknown inputs are refused', async (t) => {
  const folder = await transformersModel(t, 'broken', {}, 'model.onnx');
  const good = await readFile(join(folder, 'model.onnx'));
  for (const [content, message] of [
    [Buffer.from('no graph'), /not an ONNX file, or is damaged/],
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
    trawlError('MODEL_INVALID', /has the inputs input_odd/),
  );
});

test('the exported encoder of a classifier is imported, whatever files of a late-interaction model are beside it', async (t) => {
  const folder = await transformersModel(t, 'encoder-of-classifier', {
    'config.json': {
      model_type: 'mpnet',
      architectures: ['MPNetForSequenceClassification'],
      hidden_size: 10,
      max_position_embeddings: POSITIONS,
    },
    'artifact.metadata': {},
  });
  const { description } = await importModel(folder, { out: `${folder}-out` });
  assert.deepEqual([description.kind, description.graph.output], ['encoder', 'token_embeddings']);
});
