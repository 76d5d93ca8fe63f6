import { ONNX_TYPES } from '../../../src/encoder/model/onnx-messages.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';

/** The vector of each text's first token: [batch, hidden]. */
export function firstToken({ graph }: GraphArithmetic, hidden: string): string {
  return graph.node('Gather', [hidden, graph.integers([0], [])], { attributes: { axis: 1 } });
}

/** The mean of the vectors of the tokens that are not padding: [batch, hidden]. `mask`: int32 [batch, sequence]. */
export function meanOfTokens({ graph, type }: GraphArithmetic, hidden: string, mask: string): string {
  const weights = graph.node('Cast', [mask], { attributes: { to: ONNX_TYPES[type].code } });
  const column = graph.node('Unsqueeze', [weights, graph.integers([2])]);
  const axis = graph.integers([1]);
  const total = (values: string) => graph.node('ReduceSum', [values, axis], { attributes: { keepdims: 0 } });
  return graph.node('Div', [total(graph.node('Mul', [hidden, column])), total(column)]);
}
