import type { OnnxAttribute } from '../../../src/encoder/model/onnx-messages.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';
import { tokenPositions } from './rotary.ts';

interface AttentionOptions {
  readonly heads: number;
  /** Concatenated biases of query, key and value, still to be added; '' if there are none. */
  readonly bias?: string;
  /** int32: [batch, sequence], 0 for keys that are padding, or [batch], the tokens of each text; '' if no token sees padding. */
  readonly mask: string;
  /** Added to the scores: [1 or batch, 1 or heads, sequence, sequence]; '' for none. */
  readonly scoreBias?: string;
  /** Each token sees only itself and those before it. */
  readonly isCausal?: boolean;
  /** Factor of the scores. Default: 1 / √(size of a head). */
  readonly scale?: number;
}

/** softmax(query · keyᵀ × scale + bias) · value per head. All values are [batch, sequence, heads × size of a head]. */
export function attention(
  { graph }: GraphArithmetic,
  values: readonly string[],
  { heads, bias = '', mask, scoreBias = '', isCausal = false, scale }: AttentionOptions,
): string {
  const inputs = [...values, bias, mask, scoreBias];
  while (inputs.at(-1) === '') inputs.pop();
  const attributes: Record<string, OnnxAttribute> = { num_heads: heads };
  if (isCausal) attributes.unidirectional = 1;
  if (scale !== undefined) attributes.scale = { float: scale };
  return graph.microsoft('MultiHeadAttention', inputs, attributes);
}

/** Repeats each key or value head for the query heads that share it: [batch, sequence, shared × size] to [batch, sequence, heads × size]. */
export function repeatedHeads(
  { graph }: GraphArithmetic,
  value: string,
  { query, shared, size }: { readonly query: number; readonly shared: number; readonly size: number },
): string {
  if (query === shared) return value;
  const apart = graph.node('Reshape', [value, graph.integers([0, 0, shared, 1, size])]);
  const copies = graph.node('Expand', [apart, graph.integers([1, 1, 1, query / shared, 1])]);
  return graph.node('Reshape', [copies, graph.integers([0, 0, query * size])]);
}

/** Hides the keys that are more than `reach` positions away: [1, 1, sequence, sequence], 0 or -10,000, whose softmax is 0. */
export function windowBias(arithmetic: GraphArithmetic, ids: string, reach: number): string {
  const { graph } = arithmetic;
  // In float32, because a table of int64 would take twice the memory.
  const positions = graph.cast(tokenPositions(arithmetic, ids), 'float32');
  const [row, column] = [0, 1].map((axis) => graph.node('Unsqueeze', [positions, graph.integers([axis])]));
  const distances = graph.node('Abs', [graph.node('Sub', [row!, column!])]);
  const isFar = graph.node('Greater', [distances, graph.floats([reach], [])]);
  const bias = graph.node('Where', [isFar, arithmetic.scalar(-10_000), arithmetic.scalar(0)]);
  return graph.node('Unsqueeze', [bias, graph.integers([0, 1])]);
}
