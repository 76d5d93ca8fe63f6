import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { CheckpointWeights } from '../../../indexer/model-import/checkpoint-weights.ts';
import { GraphArithmetic, type InputScales } from '../../../indexer/model-import/graph-arithmetic.ts';
import { OnnxGraph } from '../../../indexer/model-import/onnx-graph.ts';
import { writeOnnx } from '../../../indexer/model-import/onnx-writer.ts';
import { integerProductSettings } from '../../../src/encoder/inference/int8-runner.ts';
import { seededNormal } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { tinyCheckpoint } from './tiny-checkpoint.ts';

const [OUTPUTS, INPUTS] = [24, 16];
const NAME = 'encoder.layer.0.intermediate.dense';

test('with scales per token, a token with large values takes no digits from the others', async (t) => {
  const { folder, tensors } = await tinyCheckpoint(t);
  const weights = await CheckpointWeights.open(folder);
  t.after(() => weights.close());
  const weight = weights.get(`${NAME}.weight`)!;
  const normal = seededNormal(3);
  // The first token's values are 1,000 times as large as the second's.
  const input = Float32Array.from({ length: 2 * INPUTS }, (_, i) => normal() * (i < INPUTS ? 1000 : 1));
  const error = async (scales: InputScales): Promise<readonly number[]> => {
    const graph = new OnnxGraph(scales);
    const arithmetic = new GraphArithmetic(graph, 'int8', scales);
    graph.input('x', 'float32', [1, 2, INPUTS]);
    arithmetic.output('y', arithmetic.dense('product', 'x', { weight }), [1, 2, OUTPUTS]);
    const path = join(await tempFolder(t), `${scales}.onnx`);
    await writeOnnx(path, graph);
    const session = await InferenceSession.create(path, {
      intraOpNumThreads: 1,
      extra: { session: integerProductSettings() },
    });
    const { y } = await session.run({ x: new Tensor('float32', input, [1, 2, INPUTS]) });
    await session.release();
    return [0, 1].map((token) => relativeError(y!.data as Float32Array, token));
  };
  function relativeError(actual: Float32Array, token: number): number {
    const { values } = tensors[`${NAME}.weight`]!;
    let [difference, size] = [0, 0];
    for (let row = 0; row < OUTPUTS; row++) {
      let exact = 0;
      for (let i = 0; i < INPUTS; i++) exact += values[row * INPUTS + i]! * input[token * INPUTS + i]!;
      difference += (actual[token * OUTPUTS + row]! - exact) ** 2;
      size += exact ** 2;
    }
    return Math.sqrt(difference / size);
  }
  const perToken = await error('per-token');
  const perRun = await error('per-run');
  assert.ok(
    perToken.every((each) => each < 0.02),
    `${perToken}`,
  );
  assert.ok(perRun[0]! < 0.02 && perRun[1]! > 0.5, `${perRun}`);
});
