import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../model-import/import-model.ts';
import { readModelFolder, verifyModelFolder } from '../../src/embedding/model/model-folder.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { transformersModel } from '../embedding/model-fixtures.ts';
import { trawlError } from '../helpers/trawl-error.ts';
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
  await rm(join(second, 'model.onnx.data'));
  await assert.rejects(
    importModel(second, { out: `${second}-2` }),
    trawlError('MODEL_INVALID', /model\.onnx\.data is missing/),
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
