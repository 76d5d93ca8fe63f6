import type { EncoderConfig } from './encoder-config.ts';
import type { Dense, EncoderLayer, EncoderWeights, LayerNorm } from './encoder-weights.ts';
import { MICROSOFT, OnnxGraph } from './onnx-graph.ts';
import { addedRows, asStored, joined, transposed } from './weight-tensors.ts';

export interface Variant {
  readonly attention: 'attention' | 'mha' | 'mha-nomask' | 'plain';
}

const BATCH = 'batch';
const LENGTH = 'sequence';

export function bertGraph(config: EncoderConfig, weights: EncoderWeights, variant: Variant): OnnxGraph {
  const graph = new OnnxGraph(config.modelType);
  const ids = graph.input('input_ids', 'int64', [BATCH, LENGTH]);
  const mask = graph.input('attention_mask', 'int64', [BATCH, LENGTH]);
  let hidden = embeddings(graph, config, weights, ids);
  const maskInput =
    variant.attention === 'plain' ? additiveMask(graph, mask) : graph.node('Cast', [mask], { attributes: { to: 6 } });
  weights.layers.forEach((layer, i) => {
    hidden = encoderLayer(
      graph,
      config,
      layer,
      hidden,
      maskInput,
      variant,
      `layer.${i}`,
      i === weights.layers.length - 1,
    );
  });
  graph.output('last_hidden_state', 'float32', [BATCH, LENGTH, config.hiddenSize]);
  return graph;
}

function additiveMask(graph: OnnxGraph, mask: string): string {
  const f = graph.node('Cast', [mask], { attributes: { to: 1 } });
  const u = graph.node('Unsqueeze', [f, graph.integers([1, 2])]);
  const one = graph.scalar(1, 'float32', new Uint8Array(new Float32Array([1]).buffer));
  const low = graph.scalar(-10000, 'float32', new Uint8Array(new Float32Array([-10000]).buffer));
  return graph.node('Mul', [graph.node('Sub', [one, u]), low]);
}

function embeddings(graph: OnnxGraph, config: EncoderConfig, weights: EncoderWeights, ids: string): string {
  const { hiddenSize: hidden } = config;
  const words = graph.node('Gather', [graph.tensor(asStored('words', weights.words)), ids]);
  let summed = words;
  const table = graph.tensor(
    weights.tokenTypes !== null && config.tokenTypes === 1
      ? addedRows('positions', weights.positions, weights.tokenTypes)
      : asStored('positions', weights.positions),
  );
  if (weights.tokenTypes !== null && config.tokenTypes > 1) {
    const types = graph.input('token_type_ids', 'int64', [BATCH, LENGTH]);
    const rows = graph.node('Gather', [graph.tensor(asStored('token_types', weights.tokenTypes)), types]);
    summed = graph.node('Add', [summed, rows]);
  }
  const length = graph.node('Shape', [ids], { attributes: { start: 1, end: 2 } });
  const positions = graph.node('Slice', [table, graph.integers([0]), length, graph.integers([0])]);
  summed = graph.node('Add', [summed, positions]);
  void hidden;
  return graph.node('LayerNormalization', [summed, ...norm(graph, 'embeddings.norm', weights.embeddingNorm)], {
    attributes: { axis: -1, epsilon: { float: config.layerNormEpsilon } },
  });
}

function norm(graph: OnnxGraph, name: string, weights: LayerNorm): [string, string] {
  return [
    graph.tensor(asStored(`${name}.scale`, weights.weight)),
    graph.tensor(asStored(`${name}.bias`, weights.bias)),
  ];
}

function biasOf(graph: OnnxGraph, name: string, dense: Dense): string {
  return graph.tensor(asStored(`${name}.bias`, dense.bias));
}

function matMul(graph: OnnxGraph, name: string, input: string, parts: readonly Dense[]): string {
  const weight = graph.tensor(
    transposed(
      `${name}.weight`,
      parts.map((p) => p.weight),
    ),
  );
  return graph.node('MatMul', [input, weight]);
}

function encoderLayer(
  graph: OnnxGraph,
  config: EncoderConfig,
  layer: EncoderLayer,
  input: string,
  mask: string,
  variant: Variant,
  name: string,
  last: boolean,
): string {
  const { hiddenSize: H, heads } = config;
  const qkv = [layer.query, layer.key, layer.value];
  const qkvBias = graph.tensor(
    joined(
      `${name}.qkv.bias`,
      qkv.map((d) => d.bias),
    ),
  );
  let context: string;
  if (variant.attention === 'attention') {
    const weight = graph.tensor(
      transposed(
        `${name}.qkv.weight`,
        qkv.map((d) => d.weight),
      ),
    );
    context = graph.node('Attention', [input, weight, qkvBias, mask], {
      domain: MICROSOFT,
      attributes: { num_heads: heads },
    });
  } else if (variant.attention === 'plain') {
    const product = graph.node('Add', [matMul(graph, `${name}.qkv`, input, qkv), qkvBias]);
    const parts = graph.nodeWithOutputs('Split', [product], 3, { attributes: { axis: -1 } });
    const shape = graph.integers([0, 0, heads, H / heads]);
    const h = parts.map((p) => graph.node('Reshape', [p, shape]));
    const q = graph.node('Transpose', [h[0]!], { attributes: { perm: [0, 2, 1, 3] } });
    const k = graph.node('Transpose', [h[1]!], { attributes: { perm: [0, 2, 3, 1] } });
    const v = graph.node('Transpose', [h[2]!], { attributes: { perm: [0, 2, 1, 3] } });
    const scale = Math.fround(1 / Math.sqrt(H / heads));
    const s = graph.scalar(scale, 'float32', new Uint8Array(new Float32Array([scale]).buffer));
    const scores = graph.node('Add', [graph.node('Mul', [graph.node('MatMul', [q, k]), s]), mask]);
    const p = graph.node('Softmax', [scores], { attributes: { axis: -1 } });
    const c = graph.node('Transpose', [graph.node('MatMul', [p, v])], { attributes: { perm: [0, 2, 1, 3] } });
    context = graph.node('Reshape', [c, graph.integers([0, 0, H])]);
  } else {
    const product = matMul(graph, `${name}.qkv`, input, qkv);
    const parts = graph.nodeWithOutputs('Split', [product], 3, { attributes: { axis: -1 } });
    const inputs = [...parts, qkvBias, ...(variant.attention === 'mha' ? [mask] : [])];
    context = graph.node('MultiHeadAttention', inputs, { domain: MICROSOFT, attributes: { num_heads: heads } });
  }
  const attended = matMul(graph, `${name}.attention_output`, context, [layer.attentionOutput]);
  const first = graph.node(
    'SkipLayerNormalization',
    [
      attended,
      input,
      ...norm(graph, `${name}.attention_norm`, layer.attentionNorm),
      biasOf(graph, `${name}.attention_output`, layer.attentionOutput),
    ],
    { domain: MICROSOFT, attributes: { epsilon: { float: config.layerNormEpsilon } } },
  );
  const inner = graph.node(
    'BiasGelu',
    [
      matMul(graph, `${name}.intermediate`, first, [layer.intermediate]),
      biasOf(graph, `${name}.intermediate`, layer.intermediate),
    ],
    { domain: MICROSOFT },
  );
  return graph.node(
    'SkipLayerNormalization',
    [
      matMul(graph, `${name}.output`, inner, [layer.output]),
      first,
      ...norm(graph, `${name}.output_norm`, layer.outputNorm),
      biasOf(graph, `${name}.output`, layer.output),
    ],
    {
      domain: MICROSOFT,
      attributes: { epsilon: { float: config.layerNormEpsilon } },
      ...(last ? { output: 'last_hidden_state' } : {}),
    },
  );
}
