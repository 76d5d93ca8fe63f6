import type { GraphArithmetic, Product } from '../graph-arithmetic.ts';
import type { Dense } from '../weight-finder.ts';

/** Activation of the feed-forward layers: exact GELU (erf), its tanh approximation, ReLU, or SiLU (x · sigmoid(x)). */
export type Activation = 'gelu' | 'gelu-tanh' | 'relu' | 'silu';

/** Names of activations in config.json. */
export const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  gelu_pytorch_tanh: 'gelu-tanh',
  relu: 'relu',
};

/** activation(value + bias). */
export function activated(arithmetic: GraphArithmetic, product: Product, activation: Activation): string {
  const { graph } = arithmetic;
  const inputs = product.bias === '' ? [product.value] : [product.value, product.bias];
  switch (activation) {
    case 'gelu':
      return graph.microsoft(inputs.length === 1 ? 'Gelu' : 'BiasGelu', inputs);
    case 'gelu-tanh':
      return graph.microsoft('FastGelu', inputs);
    case 'relu':
      return graph.node('Relu', [arithmetic.withBias(product)]);
    case 'silu': {
      const value = arithmetic.withBias(product);
      return graph.node('Mul', [value, graph.node('Sigmoid', [value])]);
    }
  }
}

/** down(activation(gate(x)) × up(x)). */
export function gatedFeedForward(
  arithmetic: GraphArithmetic,
  name: string,
  input: string,
  { gate, up, down }: { readonly gate: Dense; readonly up: Dense; readonly down: Dense },
  activation: Activation,
): string {
  const [gates, values] = arithmetic.denses(`${name}.gate_up`, input, [gate, up]);
  const open = activated(arithmetic, { value: gates!, bias: '' }, activation);
  return arithmetic.dense(`${name}.down`, arithmetic.graph.node('Mul', [open, values!]), down);
}
