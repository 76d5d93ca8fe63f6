import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { GRAPH_FILES } from '../../indexer/model-import/plan-checkpoint.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { integerProductSettings } from '../../src/encoder/inference/int8-runner.ts';
import { fixture } from '../encoder/model-fixtures.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Case {
  readonly name: string;
  readonly folder: string;
  readonly precisions: readonly Precision[];
  readonly inputs: Readonly<Record<string, number[][]>>;
  readonly outputs: Readonly<Record<string, { readonly shape: readonly number[]; readonly path: string }>>;
}

/** Largest allowed difference of an element. */
const NEAR = 1e-4;

test('imported checkpoints of Transformers compute what torch computes', {
  skip: withoutTorch(),
}, async (t) => {
  const folder = await tempFolder(t);
  const request = { folder, tokenizer: fixture('tokenizer.json'), layers: runs(3, 12) };
  const cases = (await runTorchPeer('checkpoint_make.py', request)) as readonly Case[];
  for (const { name, folder: source, precisions, inputs, outputs } of cases) {
    await t.test(name, async (t) => {
      const { folder: out } = await importModel(source, {
        out: join(folder, `${name}-model`),
        precisions,
        // The graphs are checked, not the engine's weights.
        int8: 'onnxruntime',
      });
      t.after(() => Promise.all([source, out].map((path) => rm(path, { recursive: true, force: true }))));
      const computed = await run(join(out, 'model.onnx'), inputs);
      for (const [output, { shape, path }] of Object.entries(outputs)) {
        const expected = new Float32Array(new Uint8Array(await readFile(path)).buffer);
        const { data, dims } = computed[output]!;
        assert.deepEqual(dims, shape);
        const worst = largestDifference(data as Float32Array, expected, output, inputs.attention_mask!, shape.at(-1)!);
        t.diagnostic(`${output}: ${worst.toExponential(1)} at most`);
        assert.ok(worst <= NEAR, `${output} differs by ${worst}`);
      }
      const graphs = precisions.map((precision) => join(out, GRAPH_FILES[precision]));
      assert.deepEqual(
        await runTorchPeer('onnx_check.py', graphs),
        graphs.map(() => null),
      );
    });
  }
});

async function run(graph: string, inputs: Case['inputs']): Promise<InferenceSession.OnnxValueMapType> {
  const session = await InferenceSession.create(graph, {
    intraOpNumThreads: 1,
    extra: { session: integerProductSettings() },
  });
  const feeds = session.inputNames.map((name) => {
    const rows = inputs[name]!;
    return [name, new Tensor('int64', BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0]!.length])];
  });
  const outputs = await session.run(Object.fromEntries(feeds));
  await session.release();
  return outputs;
}

/** Ignores the vectors of padding, which have no meaning. */
function largestDifference(
  actual: Float32Array,
  expected: Float32Array,
  output: string,
  mask: readonly (readonly number[])[],
  dimension: number,
): number {
  const attended = output === 'last_hidden_state' ? mask.flat() : null;
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    if (attended !== null && attended[Math.floor(i / dimension)] === 0) continue;
    const difference = Math.abs(actual[i]! - expected[i]!);
    if (Number.isNaN(difference)) return Number.POSITIVE_INFINITY;
    worst = Math.max(worst, difference);
  }
  return worst;
}
