import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { CheckpointWeights, Weight } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { EncoderFamily } from '../encoder-family.ts';
import { GraphArithmetic } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention } from '../parts/attention.ts';
import { type Activation, activated, gatedFeedForward } from '../parts/feed-forward.ts';
import { idsInput, maskInput, tokenOutput } from '../parts/inputs-and-outputs.ts';
import { rmsNorm, sum } from '../parts/norms.ts';
import { tokenPositions } from '../parts/rotary.ts';
import { checkLayers, prefixOf, WeightFinder } from '../weight-finder.ts';

const FEED_FORWARDS: Readonly<Record<string, { readonly activation: Activation; readonly isGated: boolean }>> = {
  relu: { activation: 'relu', isGated: false },
  'gated-gelu': { activation: 'gelu-tanh', isGated: true },
  'gated-silu': { activation: 'silu', isGated: true },
};

/** The encoder of T5 (GTR, sentence-T5): no positions, but a bias of the scores by the distance of two tokens. */
export const T5_FAMILY: EncoderFamily = {
  modelTypes: ['t5'],
  examples: 'GTR, sentence-T5',
  parse: (raw, path) => {
    const config = parseConfig(new ConfigReader(raw, path));
    return {
      modelType: 't5',
      vocabularySize: config.vocabularySize,
      generatesText: true,
      overflowsFloat16: true,
      encoder: (weights) => {
        const found = findWeights(weights, config);
        return (precision, modules) => t5Graph(config, found, precision, modules);
      },
    };
  },
};

type T5Config = ReturnType<typeof parseConfig>;

function parseConfig(read: ConfigReader) {
  const heads = read.count('num_heads', 1);
  const buckets = read.count('relative_attention_num_buckets', 4, 32);
  if (buckets % 4 !== 0) throw read.refused(`relative_attention_num_buckets ${buckets} is not a multiple of 4`);
  return {
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize: read.count('d_model', 1),
    layers: read.count('num_layers', 1),
    heads,
    /** Values of a head; need not be hiddenSize / heads. */
    headSize: read.count('d_kv', 1),
    intermediateSize: read.count('d_ff', 1),
    epsilon: read.epsilon('layer_norm_epsilon', 1e-6),
    ...read.choice('feed_forward_proj', FEED_FORWARDS, 'relu'),
    /** Distances between tokens fall into this many buckets, half for each direction. */
    buckets,
    /** Distances from this on fall into the last bucket. */
    maxDistance: read.count('relative_attention_max_distance', buckets, 128),
  };
}

const DISTANCES = 'block.0.layer.0.SelfAttention.relative_attention_bias.weight';

function findWeights(weights: CheckpointWeights, config: T5Config) {
  const prefix = prefixOf(weights, DISTANCES, ['encoder.']);
  checkLayers(weights, `${prefix}block.`, config.layers, 'num_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner, vocabularySize, isGated } = config;
  const width = config.heads * config.headSize;
  const layer = (name: string) => {
    const attentionPart = (part: string) => `${name}.layer.0.SelfAttention.${part}`;
    const feedForward = (part: string) => `${name}.layer.1.DenseReluDense.${part}`;
    return {
      attentionNorm: find.weight(`${name}.layer.0.layer_norm.weight`, [hidden]),
      query: find.matrix(attentionPart('q'), width, hidden),
      key: find.matrix(attentionPart('k'), width, hidden),
      value: find.matrix(attentionPart('v'), width, hidden),
      output: find.matrix(attentionPart('o'), hidden, width),
      feedForwardNorm: find.weight(`${name}.layer.1.layer_norm.weight`, [hidden]),
      gate: isGated ? find.matrix(feedForward('wi_0'), inner, hidden) : undefined,
      up: find.matrix(feedForward(isGated ? 'wi_1' : 'wi'), inner, hidden),
      down: find.matrix(feedForward('wo'), hidden, inner),
    };
  };
  const shared = new WeightFinder(weights, prefix.replace(/encoder\.$/, ''));
  return {
    words: shared.has('shared.weight')
      ? shared.weight('shared.weight', [vocabularySize, hidden])
      : find.weight('embed_tokens.weight', [vocabularySize, hidden]),
    /** Bias of the scores by bucket: [buckets, heads]. */
    distances: find.weight(DISTANCES, [config.buckets, config.heads]),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`block.${i}`)),
    norm: find.weight('final_layer_norm.weight', [hidden]),
  };
}

function t5Graph(
  config: T5Config,
  weights: ReturnType<typeof findWeights>,
  precision: Precision,
  modules: readonly DenseModule[],
): OnnxGraph {
  const { heads, epsilon, activation, hiddenSize } = config;
  const graph = new OnnxGraph('t5');
  const arithmetic = new GraphArithmetic(graph, precision, 'per-token');
  const norm = (name: string, input: string, weight: Weight): string =>
    rmsNorm(arithmetic, name, input, weight, epsilon);
  const ids = idsInput(arithmetic);
  const mask = maskInput(arithmetic);
  const scoreBias = distanceBias(arithmetic, ids, weights.distances, config);
  let hidden = arithmetic.lookUp('words', weights.words, ids);
  for (const [i, layer] of weights.layers.entries()) {
    const name = `layer.${i}`;
    const { query, key, value, gate, up, down } = layer;
    const normed = norm(`${name}.attention_norm`, hidden, layer.attentionNorm);
    const values = arithmetic.denses(`${name}.attention`, normed, [query, key, value]);
    const context = attention(arithmetic, values, { heads, mask, scoreBias, scale: 1 });
    const middle = sum(arithmetic, [hidden, arithmetic.dense(`${name}.attention_output`, context, layer.output)]);
    const inner = norm(`${name}.feed_forward_norm`, middle, layer.feedForwardNorm);
    let output: string;
    if (gate === undefined) {
      const open = activated(arithmetic, arithmetic.product(`${name}.up`, inner, [up]), activation);
      output = arithmetic.dense(`${name}.down`, open, down);
    } else output = gatedFeedForward(arithmetic, `${name}.feed_forward`, inner, { gate, up, down }, activation);
    hidden = sum(arithmetic, [middle, output]);
  }
  tokenOutput(arithmetic, norm('norm', hidden, weights.norm), hiddenSize, modules);
  return graph;
}

/** The bias of each pair of tokens, for all layers: [1, heads, sequence, sequence]. */
function distanceBias(arithmetic: GraphArithmetic, ids: string, table: Weight, config: T5Config): string {
  const { graph } = arithmetic;
  const { maxDistance: far } = config;
  const positions = tokenPositions(arithmetic, ids);
  const [keys, queries] = [0, 1].map((axis) => graph.node('Unsqueeze', [positions, graph.integers([axis])]));
  const limits = [graph.integers([-far], []), graph.integers([far], [])];
  const distances = graph.node('Clip', [graph.node('Sub', [keys!, queries!]), ...limits]);
  const buckets = graph.integers(Array.from({ length: 2 * far + 1 }, (_, i) => bucketOf(i - far, config)));
  const bucket = graph.node('Gather', [buckets, graph.node('Add', [distances, graph.integers([far], [])])]);
  const biases = graph.node('Gather', [arithmetic.stored('distances', table), bucket]);
  return graph.node('Unsqueeze', [
    graph.node('Transpose', [biases], { attributes: { perm: [2, 0, 1] } }),
    graph.integers([0]),
  ]);
}

/** The bucket of a distance, key minus query: half of each direction's buckets hold one distance, others grow with its logarithm. */
function bucketOf(distance: number, { buckets, maxDistance }: T5Config): number {
  const perDirection = buckets / 2;
  const first = distance > 0 ? perDirection : 0;
  const length = Math.abs(distance);
  const exact = perDirection / 2;
  if (length < exact) return first + length;
  // The sum keeps a bucket that begins at a whole logarithm from beginning one later.
  const step = Math.floor((Math.log(length / exact) / Math.log(maxDistance / exact)) * (perDirection - exact) + 1e-9);
  return first + Math.min(exact + step, perDirection - 1);
}
