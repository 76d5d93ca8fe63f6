import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { CheckpointWeights, Weight } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { EncoderFamily } from '../encoder-family.ts';
import { GraphArithmetic } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention } from '../parts/attention.ts';
import { type Activation, activated, gatedFeedForward } from '../parts/feed-forward.ts';
import { idsInput, maskInput, tokenOutput } from '../parts/inputs.ts';
import { rmsNorm, sum } from '../parts/norms.ts';
import { positionsOf } from '../parts/rotary.ts';
import { checkLayers, type Dense, prefixOf, WeightFinder } from '../weight-finder.ts';

/** Dimensions of a T5 encoder. */
interface T5Config {
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  /** Values of a head; need not be hiddenSize / heads. */
  readonly headSize: number;
  readonly intermediateSize: number;
  readonly epsilon: number;
  readonly activation: Activation;
  readonly isGated: boolean;
  /** Distances between tokens fall into this many buckets, half for each direction. */
  readonly buckets: number;
  /** Distances from this on fall into the last bucket. */
  readonly maxDistance: number;
}

interface T5Layer {
  readonly attentionNorm: Weight;
  readonly query: Dense;
  readonly key: Dense;
  readonly value: Dense;
  readonly output: Dense;
  readonly feedForwardNorm: Weight;
  /** Null if the feed-forward layer is not gated. */
  readonly gate: Dense | null;
  readonly up: Dense;
  readonly down: Dense;
}

interface T5Weights {
  readonly words: Weight;
  /** Bias of the scores by bucket: [buckets, heads]. */
  readonly distances: Weight;
  readonly layers: readonly T5Layer[];
  readonly norm: Weight;
}

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
      endToken: null,
      encoder: (weights) => {
        const found = findWeights(weights, config);
        return (precision, modules) => t5Graph(config, found, precision, modules);
      },
      crossEncoder: null,
    };
  },
};

function parseConfig(read: ConfigReader): T5Config {
  const heads = read.count('num_heads', 1);
  const buckets = read.count('relative_attention_num_buckets', 4, 32);
  if (buckets % 4 !== 0) throw read.refused(`relative_attention_num_buckets ${buckets} is not a multiple of 4`);
  return {
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize: read.count('d_model', 1),
    layers: read.count('num_layers', 1),
    heads,
    headSize: read.count('d_kv', 1),
    intermediateSize: read.count('d_ff', 1),
    epsilon: read.epsilon('layer_norm_epsilon', 1e-6),
    ...read.choice('feed_forward_proj', FEED_FORWARDS, 'relu'),
    buckets,
    maxDistance: read.count('relative_attention_max_distance', buckets, 128),
  };
}

const DISTANCES = 'block.0.layer.0.SelfAttention.relative_attention_bias.weight';

function findWeights(weights: CheckpointWeights, config: T5Config): T5Weights {
  const prefix = prefixOf(weights, DISTANCES, ['encoder.']);
  checkLayers(weights, `${prefix}block.`, config.layers, 'num_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner } = config;
  const width = config.heads * config.headSize;
  const layer = (name: string): T5Layer => {
    const attentionPart = (part: string) => `${name}.layer.0.SelfAttention.${part}`;
    const feedForward = (part: string) => `${name}.layer.1.DenseReluDense.${part}`;
    return {
      attentionNorm: find.weight(`${name}.layer.0.layer_norm.weight`, [hidden]),
      query: find.matrix(attentionPart('q'), width, hidden),
      key: find.matrix(attentionPart('k'), width, hidden),
      value: find.matrix(attentionPart('v'), width, hidden),
      output: find.matrix(attentionPart('o'), hidden, width),
      feedForwardNorm: find.weight(`${name}.layer.1.layer_norm.weight`, [hidden]),
      gate: config.isGated ? find.matrix(feedForward('wi_0'), inner, hidden) : null,
      up: find.matrix(feedForward(config.isGated ? 'wi_1' : 'wi'), inner, hidden),
      down: find.matrix(feedForward('wo'), hidden, inner),
    };
  };
  const shared = new WeightFinder(weights, prefix.replace(/encoder\.$/, ''));
  const words = shared.has('shared.weight') ? shared : find;
  return {
    words: words.weight(words === shared ? 'shared.weight' : 'embed_tokens.weight', [config.vocabularySize, hidden]),
    distances: find.weight(DISTANCES, [config.buckets, config.heads]),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`block.${i}`)),
    norm: find.weight('final_layer_norm.weight', [hidden]),
  };
}

function t5Graph(
  config: T5Config,
  weights: T5Weights,
  precision: Precision,
  modules: readonly DenseModule[],
): OnnxGraph {
  const graph = new OnnxGraph('t5');
  const arithmetic = new GraphArithmetic(graph, precision, 'per-token');
  const ids = idsInput(arithmetic);
  const mask = maskInput(arithmetic);
  const scoreBias = distanceBias(arithmetic, ids, weights.distances, config);
  let hidden = arithmetic.lookUp('words', weights.words, ids);
  for (const [i, layer] of weights.layers.entries()) {
    hidden = encoderLayer(arithmetic, `layer.${i}`, layer, hidden, config, { mask, scoreBias });
  }
  const normed = rmsNorm(arithmetic, 'norm', hidden, weights.norm, config.epsilon);
  tokenOutput(arithmetic, normed, config.hiddenSize, modules);
  return graph;
}

/** The bias of each pair of tokens, for all layers: [1, heads, sequence, sequence]. */
function distanceBias(arithmetic: GraphArithmetic, ids: string, table: Weight, config: T5Config): string {
  const { graph } = arithmetic;
  const { maxDistance: far } = config;
  const positions = positionsOf(arithmetic, ids);
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

/**
 * The bucket of a distance, key minus query. Half of each direction's buckets hold one distance each, the others grow with the
 * logarithm up to the largest distance.
 */
function bucketOf(distance: number, { buckets, maxDistance }: T5Config): number {
  const ofDirection = buckets / 2;
  const first = distance > 0 ? ofDirection : 0;
  const length = Math.abs(distance);
  const exact = ofDirection / 2;
  if (length < exact) return first + length;
  // The sum keeps a bucket that begins at a whole logarithm from beginning one later.
  const step = Math.floor((Math.log(length / exact) / Math.log(maxDistance / exact)) * (ofDirection - exact) + 1e-9);
  return first + Math.min(exact + step, ofDirection - 1);
}

function encoderLayer(
  arithmetic: GraphArithmetic,
  name: string,
  layer: T5Layer,
  input: string,
  { heads, epsilon, activation }: T5Config,
  { mask, scoreBias }: { readonly mask: string; readonly scoreBias: string },
): string {
  const normed = rmsNorm(arithmetic, `${name}.attention_norm`, input, layer.attentionNorm, epsilon);
  const values = arithmetic.denses(`${name}.attention`, normed, [layer.query, layer.key, layer.value]);
  const context = attention(arithmetic, values, { heads, mask, scoreBias, scale: 1 });
  const middle = sum(arithmetic, [input, arithmetic.dense(`${name}.attention_output`, context, layer.output)]);
  const inner = rmsNorm(arithmetic, `${name}.feed_forward_norm`, middle, layer.feedForwardNorm, epsilon);
  const { gate, up, down } = layer;
  const output =
    gate === null
      ? arithmetic.dense(
          `${name}.down`,
          activated(arithmetic, arithmetic.product(`${name}.up`, inner, [up]), activation),
          down,
        )
      : gatedFeedForward(arithmetic, `${name}.feed_forward`, inner, { gate, up, down }, activation);
  return sum(arithmetic, [middle, output]);
}
