import type { Weight } from '../checkpoint-weights.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';
import type { LayerNorm } from '../weight-finder.ts';

/** The sum of values of one shape. Not Add: onnxruntime fuses Add and a norm into one operator, which is slow on CPUs. */
export function sum({ graph }: GraphArithmetic, values: readonly string[]): string {
  return graph.node('Sum', values);
}

/** (x − mean) / √(variance + epsilon) × weight + bias over the last axis. */
export function layerNorm(
  arithmetic: GraphArithmetic,
  name: string,
  input: string,
  { weight, bias }: LayerNorm,
  epsilon: number,
): string {
  const scale = arithmetic.stored(`${name}.scale`, weight);
  const inputs = bias === undefined ? [input, scale] : [input, scale, arithmetic.stored(`${name}.bias`, bias)];
  return arithmetic.graph.node('LayerNormalization', inputs, { attributes: { axis: -1, epsilon: { float: epsilon } } });
}

/** x / √(mean of x² + epsilon) × weight over the last axis, always in float32, because squares exceed float16. onnxruntime fuses it. */
export function rmsNorm(
  arithmetic: GraphArithmetic,
  name: string,
  input: string,
  weight: Weight,
  epsilon: number,
): string {
  const { graph, type } = arithmetic;
  const cast = (value: string, to: 'float32' | 'float16') => (type === 'float32' ? value : graph.cast(value, to));
  const wide = cast(input, 'float32');
  const squares = graph.node('Pow', [wide, graph.floats([2], [])]);
  const mean = graph.node('ReduceMean', [squares], { attributes: { axes: [-1], keepdims: 1 } });
  const root = graph.node('Sqrt', [graph.node('Add', [mean, graph.floats([epsilon], [])])]);
  const scaled = cast(graph.node('Div', [wide, root]), 'float16');
  return graph.node('Mul', [scaled, arithmetic.stored(`${name}.scale`, weight)]);
}
