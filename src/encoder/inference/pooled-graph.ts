import { readFile, realpath } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import type { Pooling } from '../identity/model-identity.ts';
import {
  GRAPH,
  MODEL,
  nodeMessage,
  ONNX_TYPES,
  type OnnxNode,
  ProtobufWriter,
  tensorHead,
  valueMessage,
} from '../model/onnx-messages.ts';
import type { TokenBatch } from './token-batch.ts';

export const POOLING_WEIGHTS = 'trawl_pooling_weights';
export const POOLED_OUTPUT = 'trawl_pooled';
const ZERO = 'trawl_zero';

const TENSOR_BYTES = 9;

/**
 * A graph's bytes with one more output: the tokens' vectors times the input `POOLING_WEIGHTS`, float32 [batch, 1, tokens], as float32
 * [batch, 1, dimension]. A GPU then returns a hundredth of the bytes. Tokens of weight 0 do not count, even if they are NaN or infinite.
 *
 * The new nodes are a second message behind the first: a decoder of protocol buffers joins the two
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
 */
export async function withPooledOutput(path: string, tokenOutput: string): Promise<Uint8Array> {
  const node = (operator: string, inputs: string[], output: string, attributes: OnnxNode['attributes'] = {}) =>
    nodeMessage({ operator, domain: '', inputs, outputs: [output], attributes });
  const graph = new ProtobufWriter()
    .message(GRAPH.node, node('Cast', [tokenOutput], 'trawl_tokens', { to: ONNX_TYPES.float32.code }))
    .message(GRAPH.node, node('Transpose', [POOLING_WEIGHTS], 'trawl_columns', { perm: [0, 2, 1] }))
    .message(GRAPH.node, node('Cast', ['trawl_columns'], 'trawl_counts', { to: ONNX_TYPES.bool.code }))
    .message(GRAPH.node, node('Where', ['trawl_counts', 'trawl_tokens', ZERO], 'trawl_counted'))
    .message(GRAPH.node, node('MatMul', [POOLING_WEIGHTS, 'trawl_counted'], POOLED_OUTPUT))
    .message(
      GRAPH.initializer,
      tensorHead({ name: ZERO, type: 'float32', shape: [] }).bytes(TENSOR_BYTES, new Uint8Array(4)),
    )
    .message(GRAPH.input, floatsValue(POOLING_WEIGHTS, 'trawl_length'))
    .message(GRAPH.output, floatsValue(POOLED_OUTPUT, 'trawl_dimension'));
  return Buffer.concat([await readFile(path), ...new ProtobufWriter().message(MODEL.graph, graph).parts]);
}

function floatsValue(name: string, columns: string): ProtobufWriter {
  return valueMessage({ name, type: 'float32', shape: ['trawl_batch', 1, columns] });
}

/** Whether onnxruntime takes the graph without its path: then it refuses weights that a link takes out of the graph's folder. */
export async function canBeGivenAsBytes(path: string, externalData: readonly string[]): Promise<boolean> {
  const folder = await realpath(dirname(path));
  for (const name of externalData) {
    const file = await realpath(join(dirname(path), name)).catch(() => undefined);
    if (file?.startsWith(folder + sep) !== true) return false;
  }
  return true;
}

/** Whether a product with weights pools the vectors of the tokens. */
export function poolsTokens(use: Pooling | 'score'): use is 'mean' | 'cls' | 'last' {
  return use === 'mean' || use === 'cls' || use === 'last';
}

/** The weights of a batch's tokens, [rows, 1, length]; 0 for padding. */
export function poolingWeights(batch: TokenBatch, pooling: 'mean' | 'cls' | 'last'): Float32Array {
  const { rows, length, tokens } = batch;
  const weights = new Float32Array(rows * length);
  for (let row = 0; row < rows; row++) {
    const [first, count] = [row * length, tokens[row]!];
    if (pooling === 'mean') weights.fill(1 / count, first, first + count);
    else weights[pooling === 'cls' ? first : first + count - 1] = 1;
  }
  return weights;
}
