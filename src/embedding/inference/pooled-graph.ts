import { readFile } from 'node:fs/promises';
import type { Pooling } from '../../manifest/model-identity.ts';
import { ProtobufWriter } from '../model/protobuf-writer.ts';
import type { TokenBatch } from './token-batch.ts';

/** Names in the graph; no exporter uses them. */
export const POOLING_WEIGHTS = 'trawl_pooling_weights';
export const POOLED_OUTPUT = 'trawl_pooled';
const ZERO = 'trawl_zero';

/** Field numbers and data types in onnx.proto. */
const MODEL = { graph: 7 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 };
const NODE = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, integer: 3, integers: 8, type: 20 };
const ATTRIBUTE_TYPE = { integer: 2, integers: 7 };
const TENSOR = { type: 2, name: 8, bytes: 9 };
const FLOAT32 = 1;
const BOOL = 9;

/**
 * A graph's bytes with an output more: the vectors of the tokens times the input `POOLING_WEIGHTS`, float32 [batch, 1, tokens], as
 * float32 [batch, 1, dimension]. A GPU then returns one vector per text instead of one per token, a hundredth of the bytes. Tokens of
 * weight 0 do not count, even if they are NaN or infinite.
 *
 * The new nodes are a second message behind the first: a decoder of protocol buffers joins the two
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
 */
export async function withPooledOutput(path: string, tokenOutput: string): Promise<Uint8Array> {
  const to = (type: number): ProtobufWriter => attribute('to', ATTRIBUTE_TYPE.integer).integer(ATTRIBUTE.integer, type);
  const columns = attribute('perm', ATTRIBUTE_TYPE.integers);
  for (const axis of [0, 2, 1]) columns.integer(ATTRIBUTE.integers, axis);
  const graph = new ProtobufWriter()
    .message(GRAPH.node, node('Cast', [tokenOutput], 'trawl_tokens', to(FLOAT32)))
    .message(GRAPH.node, node('Transpose', [POOLING_WEIGHTS], 'trawl_columns', columns))
    .message(GRAPH.node, node('Cast', ['trawl_columns'], 'trawl_counts', to(BOOL)))
    .message(GRAPH.node, node('Where', ['trawl_counts', 'trawl_tokens', ZERO], 'trawl_counted'))
    .message(GRAPH.node, node('MatMul', [POOLING_WEIGHTS, 'trawl_counted'], POOLED_OUTPUT))
    .message(
      GRAPH.initializer,
      new ProtobufWriter()
        .integer(TENSOR.type, FLOAT32)
        .string(TENSOR.name, ZERO)
        .bytes(TENSOR.bytes, new Uint8Array(4)),
    )
    .message(GRAPH.input, float32Value(POOLING_WEIGHTS, ['trawl_batch', 1, 'trawl_length']))
    .message(GRAPH.output, float32Value(POOLED_OUTPUT, ['trawl_batch', 1, 'trawl_dimension']));
  return Buffer.concat([await readFile(path), ...new ProtobufWriter().message(MODEL.graph, graph).parts]);
}

function node(operator: string, inputs: readonly string[], output: string, given?: ProtobufWriter): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const input of inputs) message.string(NODE.input, input);
  message.string(NODE.output, output).string(NODE.name, output).string(NODE.operator, operator);
  return given === undefined ? message : message.message(NODE.attribute, given);
}

function attribute(name: string, type: number): ProtobufWriter {
  return new ProtobufWriter().string(ATTRIBUTE.name, name).integer(ATTRIBUTE.type, type);
}

function float32Value(name: string, shape: readonly (number | string)[]): ProtobufWriter {
  const dimensions = new ProtobufWriter();
  for (const length of shape) {
    const dimension = new ProtobufWriter();
    dimensions.message(1, typeof length === 'string' ? dimension.string(2, length) : dimension.integer(1, length));
  }
  const tensor = new ProtobufWriter().integer(1, FLOAT32).message(2, dimensions);
  return new ProtobufWriter().string(1, name).message(2, new ProtobufWriter().message(1, tensor));
}

/** Whether a product with weights pools the vectors of the tokens. */
export function poolsTokens(use: Pooling | 'score'): use is 'mean' | 'cls' | 'last' {
  return use === 'mean' || use === 'cls' || use === 'last';
}

/** The weights of a batch's tokens, [rows, 1, length]: those of the padding are 0. */
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
