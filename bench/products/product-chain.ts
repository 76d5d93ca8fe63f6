import { OnnxGraph } from '../../indexer/model-import/onnx-graph.ts';
import { Random } from '../../src/base/random.ts';
import { kindOf, type Matrix, type ProductKind } from './product-kinds.ts';

/** The sizes of a Transformer encoder whose inner layer is four times as wide as its vectors. */
export interface ChainShape {
  readonly layers: number;
  readonly hidden: number;
}

/**
 * A graph of the matrix products of an encoder, one after the other and without what is between them: per layer four of hidden × hidden,
 * as query, key, value and output, and the two of the feed-forward network. Its input and output are float32 [tokens, hidden].
 */
export function productChain({ layers, hidden }: ChainShape, kind: ProductKind, seed: number): OnnxGraph {
  const graph = new OnnxGraph('products');
  const random = new Random(seed, layers, hidden);
  const { begin, product, end } = kindOf(kind);
  const input = graph.input('input', 'float32', ['tokens', hidden]);
  let value = begin === undefined ? input : begin(graph, input);
  for (let layer = 0; layer < layers; layer++) {
    for (const { depth, columns, name } of matricesOf(hidden)) {
      value = product(graph, value, { name: `layer.${layer}.${name}`, depth, columns }, random);
    }
  }
  graph.node('Identity', [end === undefined ? value : end(graph, value)], { output: 'output' });
  graph.output('output', 'float32', ['tokens', hidden]);
  return graph;
}

/** Multiplications and additions of the chain. */
export function chainOperations({ layers, hidden }: ChainShape, tokens: number): number {
  const products = matricesOf(hidden).reduce((sum, { depth, columns }) => sum + depth * columns, 0);
  return 2 * layers * tokens * products;
}

function matricesOf(hidden: number): readonly Matrix[] {
  const square = ['query', 'key', 'value', 'output'].map((name) => ({ name, depth: hidden, columns: hidden }));
  return [
    ...square,
    { name: 'up', depth: hidden, columns: 4 * hidden },
    { name: 'down', depth: 4 * hidden, columns: hidden },
  ];
}
