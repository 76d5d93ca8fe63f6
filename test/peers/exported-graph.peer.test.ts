import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { fixture } from '../encoder/model-fixtures.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Exported {
  readonly name: string;
  readonly folder: string;
  readonly vectors: readonly (readonly number[])[];
}

/** Of 1 to 70 tokens, more than ModernBERT's window; several of each length. */
const TEXTS = Array.from({ length: 60 }, (_, i) =>
  Array.from({ length: 1 + ((i * 7) % 70) }, (_, word) => 'abcdefghijklmnop'[(i + word * word) % 16]).join(' '),
);

test('graphs that torch exports of Qwen3 and ModernBERT give the vectors that torch computes', {
  skip: withoutTorch(),
}, async (t) => {
  const folder = await tempFolder(t);
  const request = { folder, tokenizer: fixture('tokenizer.json'), texts: TEXTS };
  const exported = (await runTorchPeer('export_onnx.py', request)) as readonly Exported[];
  assert.deepEqual(
    exported.map(({ name }) => name),
    ['qwen3', 'modernbert'],
  );
  for (const { name, folder: source, vectors: expected } of exported) {
    await t.test(name, async (t) => {
      const { folder: model, description } = await importModel(source, { out: `${source}-model` });
      assert.deepEqual([description.architecture, description.pooling], [name, name === 'qwen3' ? 'last' : 'mean']);
      const encoder = await openEncoder(model, { workers: 2 });
      t.after(() => encoder.close());
      const { vectors } = await encoder.encode(TEXTS, { inputType: 'passage' });
      let worst = 0;
      for (const [text, values] of expected.entries()) {
        const length = Math.hypot(...values);
        for (const [i, value] of values.entries()) {
          const difference = Math.abs(vectors[text * encoder.dimension + i]! - value / length);
          assert.ok(!Number.isNaN(difference));
          worst = Math.max(worst, difference);
        }
      }
      t.diagnostic(`${worst.toExponential(1)} at most`);
      assert.ok(worst <= 1e-5, String(worst));
    });
  }
});
