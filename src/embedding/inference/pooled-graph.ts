import { readFile } from 'node:fs/promises';
import type { Pooling } from '../../manifest/model-identity.ts';
import { ProtobufWriter } from '../model/protobuf-writer.ts';
import type { TokenBatch } from './token-batch.ts';

/** Names in the graph; no exporter uses them. */
export const POOLING_WEIGHTS = 'trawl_pooling_weights';
export const POOLED_OUTPUT = 'trawl_pooled';
const FLOAT32_TOKENS = 'trawl_tokens_float32';

/** Field numbers and the data type of float32 in onnx.proto. */
const MODEL = { graph: 7 };
const GRAPH = { node: 1, input: 11, output: 12 };
const NODE = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, integer: 3, type: 20 };
const INTEGER_ATTRIBUTE = 2;
const FLOAT32 = 1;

/**
 * A graph's bytes with an output more: the vectors of the tokens times the input `POOLING_WEIGHTS`, float32 [batch, 1, tokens], as
 * float32 [batch, 1, dimension]. A GPU then returns one vector per text instead of one per token, a hundredth of the bytes.
 *
 * The new nodes are a second message behind the first: a decoder of protocol buffers joins the two
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
 */
export async function withPooledOutput(path: string, tokenOutput: string): Promise<Uint8Array> {
  const cast = new ProtobufWriter()
    .string(NODE.input, tokenOutput)
    .string(NODE.output, FLOAT32_TOKENS)
    .string(NODE.name, FLOAT32_TOKENS)
    .string(NODE.operator, 'Cast')
    .message(
      NODE.attribute,
      new ProtobufWriter()
        .string(ATTRIBUTE.name, 'to')
        .integer(ATTRIBUTE.integer, FLOAT32)
        .integer(ATTRIBUTE.type, INTEGER_ATTRIBUTE),
    );
  const product = new ProtobufWriter()
    .string(NODE.input, POOLING_WEIGHTS)
    .string(NODE.input, FLOAT32_TOKENS)
    .string(NODE.output, POOLED_OUTPUT)
    .string(NODE.name, POOLED_OUTPUT)
    .string(NODE.operator, 'MatMul');
  const graph = new ProtobufWriter()
    .message(GRAPH.node, cast)
    .message(GRAPH.node, product)
    .message(GRAPH.input, float32Value(POOLING_WEIGHTS, ['trawl_batch', 1, 'trawl_tokens']))
    .message(GRAPH.output, float32Value(POOLED_OUTPUT, ['trawl_batch', 1, 'trawl_dimension']));
  return Buffer.concat([await readFile(path), ...new ProtobufWriter().message(MODEL.graph, graph).parts]);
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
