import assert from 'node:assert/strict';
import { mkdir, rename, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { OnnxGraph } from '../../../indexer/model-import/onnx-graph.ts';
import { writeOnnx } from '../../../indexer/model-import/onnx-writer.ts';
import { openOnnxSession } from '../../../src/encoder/inference/onnx-session.ts';
import { tokenBatch } from '../../../src/encoder/inference/token-batch.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const DIMENSION = 3;
/** Above this many bytes the table is in a file of its own. */
const LARGE = 3_000_000;

/** A graph whose vector of a token is a row of a table: token n has n, n + 0.5, −n, and token 0 has NaN. */
async function tableGraph(
  t: TestContext,
  { rows = 50, type = 'float32' as 'float32' | 'float16' } = {},
): Promise<string> {
  const graph = new OnnxGraph('table');
  const ids = graph.input('input_ids', 'int64', ['batch', 'sequence']);
  const row = (n: number): number[] => (n === 0 ? [Number.NaN, 0, 0] : [n, n + 0.5, -n]);
  const table = Float32Array.from(Array.from({ length: rows }, (_, n) => row(n)).flat());
  const floats = graph.tensor({
    name: 'table',
    type: 'float32',
    shape: [rows, DIMENSION],
    bytes: () => [new Uint8Array(table.buffer)],
  });
  const narrow = graph.node('Cast', [graph.node('Gather', [floats, ids])], {
    attributes: { to: type === 'float32' ? 1 : 10 },
    output: 'last_hidden_state',
  });
  graph.output(narrow, type, ['batch', 'sequence', DIMENSION]);
  const path = join(await tempFolder(t), 'model.onnx');
  await writeOnnx(path, graph);
  return path;
}

/** Two texts of 3 tokens and 1, padded to 4 tokens, and a row without a text. */
const BATCH = tokenBatch(
  [
    { ids: [1, 2, 6], cut: 'nothing' },
    { ids: [4], cut: 'nothing' },
  ],
  4,
  3,
);

async function outputOf(t: TestContext, path: string, use: 'mean' | 'cls' | 'last', poolsInGraph = true) {
  const session = await openOnnxSession(path, {
    use,
    cudaDevice: null,
    shareWeights: false,
    externalData: [],
    poolsInGraph,
  });
  t.after(() => session.close());
  const { data, dims } = await session.run(BATCH);
  return { isPooled: session.isPooled, values: [...data], dims };
}

for (const [use, expected] of [
  ['mean', [3, 3.5, -3]],
  ['cls', [1, 1.5, -1]],
  ['last', [6, 6.5, -6]],
] as const) {
  test(`a graph pools the tokens of each text itself (${use}); NaN of the padding does not count`, async (t) => {
    const { isPooled, values, dims } = await outputOf(t, await tableGraph(t), use);
    assert.deepEqual([isPooled, dims], [true, [3, 1, DIMENSION]]);
    const wanted = [...expected, 4, 4.5, -4];
    for (const [i, value] of values.slice(0, 6).entries()) {
      assert.ok(Math.abs(value - wanted[i]!) < 1e-5, `${values}`);
    }
  });
}

test('vectors in float16 are read whatever type of array Node.js has for them, and pooled in float32', async (t) => {
  const path = await tableGraph(t, { type: 'float16' });
  const { values, dims } = await outputOf(t, path, 'mean', false);
  assert.deepEqual(
    [dims, values.slice(0, 9)],
    [
      [3, 4, DIMENSION],
      [1, 1.5, -1, 2, 2.5, -2, 6, 6.5, -6],
    ],
  );
  assert.deepEqual((await outputOf(t, path, 'last')).values.slice(0, 3), [6, 6.5, -6]);
});

test('weights in a file beside the graph are found; behind a link out of its folder, the graph is opened without the pooling', async (t) => {
  const path = await tableGraph(t, { rows: LARGE });
  assert.equal((await outputOf(t, path, 'mean')).isPooled, true);
  // As in the cache of Hugging Face's hub: a folder of links to files of other names.
  const [blobs, snapshot] = [join(await tempFolder(t), 'blobs'), join(await tempFolder(t), 'snapshot')];
  for (const folder of [blobs, snapshot]) await mkdir(folder);
  for (const file of [path, `${path}.data`]) {
    const blob = join(blobs, `x${basename(file)}`);
    await rename(file, blob);
    await symlink(blob, join(snapshot, basename(file)));
  }
  const { isPooled, values, dims } = await outputOf(t, join(snapshot, 'model.onnx'), 'mean');
  assert.deepEqual([isPooled, dims, values.slice(0, 3)], [false, [3, 4, DIMENSION], [1, 1.5, -1]]);
});

test('an output that has one vector for each text is not pooled: with as many texts as tokens, they would be mixed', async (t) => {
  const graph = new OnnxGraph('pooled');
  const ids = graph.input('input_ids', 'int64', ['batch', 'sequence']);
  const table = graph.tensor({
    name: 'table',
    type: 'float32',
    shape: [50, DIMENSION],
    bytes: () => [new Uint8Array(50 * DIMENSION * 4)],
  });
  const mean = graph.node('ReduceMean', [graph.node('Gather', [table, ids])], {
    attributes: { axes: [1], keepdims: 0 },
    output: 'sentence_embedding',
  });
  graph.output(mean, 'float32', ['batch', DIMENSION]);
  const path = join(await tempFolder(t), 'model.onnx');
  await writeOnnx(path, graph);
  const options = { use: 'mean', cudaDevice: null, externalData: [], shareWeights: false, poolsInGraph: true } as const;
  await assert.rejects(
    openOnnxSession(path, { ...options, outputName: 'sentence_embedding' }),
    trawlError(
      'MODEL_INVALID',
      /the output sentence_embedding of the shape batch × 3; expected a vector of each token/,
    ),
  );
});
