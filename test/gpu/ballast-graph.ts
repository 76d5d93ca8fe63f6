import { OnnxGraph } from '../../indexer/model-import/onnx-graph.ts';
import { writeOnnx } from '../../indexer/model-import/onnx-writer.ts';

/** Writes a graph that needs 4 bytes of a device's memory for each of `values`, and returns their maximum. Returns its path. */
export async function writeBallastGraph(path: string): Promise<string> {
  const graph = new OnnxGraph('ballast');
  const values = graph.input('values', 'int64', [1]);
  const filled = graph.node('Expand', [graph.floats([0], [1]), values]);
  // A second tensor, so that the first one cannot be left out.
  graph.node('ReduceMax', [graph.node('Neg', [filled])], { attributes: { axes: [0], keepdims: 1 }, output: 'largest' });
  graph.output('largest', 'float32', [1]);
  await writeOnnx(path, graph);
  return path;
}
