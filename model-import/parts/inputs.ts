import type { GraphArithmetic } from '../graph-arithmetic.ts';
import { ONNX_TYPES } from '../onnx-graph.ts';

/** Names of the variable dimensions. */
export const BATCH = 'batch';
export const LENGTH = 'sequence';

/** Token ids: int64 [batch, sequence]. */
export function idsInput({ graph }: GraphArithmetic): string {
  return graph.input('input_ids', 'int64', [BATCH, LENGTH]);
}

/** 1 for a token, 0 for padding on the right: the input is int64, the result int32 [batch, sequence]. */
export function maskInput({ graph }: GraphArithmetic): string {
  const mask = graph.input('attention_mask', 'int64', [BATCH, LENGTH]);
  return graph.node('Cast', [mask], { attributes: { to: ONNX_TYPES.int32.code } });
}

/** The vectors of the tokens as the output `last_hidden_state`: float32 [batch, sequence, hidden]. */
export function tokenOutput(arithmetic: GraphArithmetic, hidden: string, hiddenSize: number): void {
  arithmetic.output('last_hidden_state', hidden, [BATCH, LENGTH, hiddenSize]);
}
