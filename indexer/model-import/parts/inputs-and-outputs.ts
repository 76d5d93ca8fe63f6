import type { DenseModule } from '../dense-modules.ts';
import type { GraphArithmetic } from '../graph-arithmetic.ts';
import type { Dense } from '../weight-finder.ts';

/** Names of the variable dimensions. */
export const BATCH = 'batch';
const LENGTH = 'sequence';

/** Token ids: int64 [batch, sequence]. */
export function idsInput({ graph }: GraphArithmetic): string {
  return graph.input('input_ids', 'int64', [BATCH, LENGTH]);
}

/** 1 for a token, 0 for padding on the right: the input is int64, the result int32 [batch, sequence]. */
export function maskInput({ graph }: GraphArithmetic): string {
  return graph.cast(graph.input('attention_mask', 'int64', [BATCH, LENGTH]), 'int32');
}

/**
 * What hides the padding from `attention`: the mask, or in float16 the number of tokens of each text, int32 [batch]. On a GPU,
 * onnxruntime's fused attention takes no mask per token: in batches of 16,384 tokens, BERT-base takes 0.8 times as long at 128 tokens
 * a text and half as long at 512 (an H100, onnxruntime 1.30).
 */
export function keyMask(arithmetic: GraphArithmetic): string {
  const { graph, type } = arithmetic;
  const mask = maskInput(arithmetic);
  if (type !== 'float16') return mask;
  return graph.node('ReduceSum', [mask, graph.integers([1])], { attributes: { keepdims: 0 } });
}

/** 0 or 1 for the first or second text of a pair: int64 [batch, sequence]. */
export function typesInput({ graph }: GraphArithmetic): string {
  return graph.input('token_type_ids', 'int64', [BATCH, LENGTH]);
}

/** The vector of each text's first token: [batch, hidden]. */
export function firstToken({ graph }: GraphArithmetic, hidden: string): string {
  return graph.node('Gather', [hidden, graph.integers([0], [])], { attributes: { axis: 1 } });
}

/** The mean of the vectors of the tokens that are not padding: [batch, hidden]. `mask`: int32 [batch, sequence]. */
export function meanOfTokens({ graph, type }: GraphArithmetic, hidden: string, mask: string): string {
  const column = graph.node('Unsqueeze', [graph.cast(mask, type), graph.integers([2])]);
  const axis = graph.integers([1]);
  const total = (values: string) => graph.node('ReduceSum', [values, axis], { attributes: { keepdims: 0 } });
  return graph.node('Div', [total(graph.node('Mul', [hidden, column])), total(column)]);
}

/** The score of every token as an output, float32 [batch, sequence, 1]; the last token's score is the pair's. */
export function tokenScores(arithmetic: GraphArithmetic, hidden: string, head: Dense): void {
  arithmetic.output('logits', arithmetic.smallDense('score', hidden, head), [BATCH, LENGTH, head.weight.shape[0]!]);
}

/** The tokens' vectors as the output `last_hidden_state`, or after Dense modules `token_embeddings`: float32 [batch, sequence, values]. */
export function tokenOutput(
  arithmetic: GraphArithmetic,
  hidden: string,
  hiddenSize: number,
  modules: readonly DenseModule[],
): void {
  let [value, size] = [hidden, hiddenSize];
  for (const [i, { dense, activation }] of modules.entries()) {
    const mapped = arithmetic.smallDense(`module.${i}`, value, dense);
    value = activation === 'tanh' ? arithmetic.graph.node('Tanh', [mapped]) : mapped;
    size = dense.weight.shape[0]!;
  }
  arithmetic.output(modules.length === 0 ? 'last_hidden_state' : 'token_embeddings', value, [BATCH, LENGTH, size]);
}
