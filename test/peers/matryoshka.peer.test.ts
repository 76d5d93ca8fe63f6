import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const TEXTS = [
  'Which river flows through Vienna?',
  'The Danube flows through Vienna.',
  'x',
  'a longer text '.repeat(20),
];
const DIMENSIONS = [64, 32, 8];

test('nomic-embed-text-v1.5 is truncated as its model card does with torch', { skip: withoutTorch() }, async (t) => {
  const folder = await tempFolder(t);
  const tokenizer = join(folder, 'tokenizer.json');
  await copyFile(join(packageRoot, 'models/token-average-256/tokenizer.json'), tokenizer);
  const checkpoint = join(folder, 'nomic-embed-text-v1.5');
  const request = { tokenizer, folder: checkpoint, texts: TEXTS, dimensions: DIMENSIONS };
  const expected = (await runTorchPeer('matryoshka.py', request)) as number[][][];
  const { folder: model } = await importModel(checkpoint, { out: join(folder, 'model'), precisions: ['float32'] });
  for (const [at, dimension] of DIMENSIONS.entries()) {
    const overrides = { dimension, passagePrefix: '' };
    const encoder = await openEncoder(model, { workers: 1, overrides });
    const { vectors } = await encoder.encode(TEXTS, { inputType: 'passage' });
    await encoder.close();
    const worst = vectors.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[at]!.flat()[i]!)), 0);
    t.diagnostic(`${dimension} values: ${worst.toExponential(1)} at most`);
    assert.ok(worst <= 1e-5, `${dimension}: ${worst}`);
  }
});
