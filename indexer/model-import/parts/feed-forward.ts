import type { GraphArithmetic, Product } from '../graph-arithmetic.ts';
import { MICROSOFT } from '../onnx-graph.ts';
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
export function activated({ graph }: GraphArithmetic, { value, bias }: Product, activation: Activation): string {
  const withBias = () => (bias === '' ? value : graph.node('Add', [value, bias]));
  const operators: Readonly<Record<Activation, () => string>> = {
    gelu: () =>
      bias === ''
        ? graph.node('Gelu', [value], { domain: MICROSOFT })
        : graph.node('BiasGelu', [value, bias], { domain: MICROSOFT }),
    'gelu-tanh': () => graph.node('FastGelu', bias === '' ? [value] : [value, bias], { domain: MICROSOFT }),
    relu: () => graph.node('Relu', [withBias()]),
    silu: () => {
      const sum = withBias();
      return graph.node('Mul', [sum, graph.node('Sigmoid', [sum])]);
    },
  };
  return operators[activation]();
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
