import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import type { CheckpointWeights } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { EncoderFamily } from '../encoder-family.ts';
import { splitDense } from '../fused-weights.ts';
import { GraphArithmetic } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention, windowBias } from '../parts/attention.ts';
import { ACTIVATIONS, activated, gatedFeedForward } from '../parts/feed-forward.ts';
import { BATCH, firstToken, idsInput, maskInput, meanOfTokens, tokenOutput } from '../parts/inputs-and-outputs.ts';
import { layerNorm, sum } from '../parts/norms.ts';
import { inverseFrequencies, rotaryBase, rotaryTables, rotated } from '../parts/rotary.ts';
import { checkLayers, type LayerNorm, prefixOf, WeightFinder } from '../weight-finder.ts';

/** ModernBERT: rotary positions of two bases, every few layers global attention, the others within a window. */
export const MODERNBERT_FAMILY: EncoderFamily = {
  modelTypes: ['modernbert'],
  examples: 'gte-modernbert, modernbert-embed, granite-embedding r2',
  parse: (raw, path) => {
    const read = new ConfigReader(raw, path);
    const config = parseConfig(read, raw);
    return {
      modelType: 'modernbert',
      vocabularySize: config.vocabularySize,
      encoder: (weights) => {
        const found = findWeights(weights, config);
        return (precision, modules) => modernBertGraph(config, found, precision, modules);
      },
      crossEncoder: (weights) => {
        const found = findWeights(weights, config);
        const head = findHead(weights, config, read);
        return {
          labels: head.projection.weight.shape[0]!,
          graph: (precision) => modernBertGraph(config, found, precision, head),
        };
      },
    };
  },
};

type ModernBertConfig = ReturnType<typeof parseConfig>;

function parseConfig(read: ConfigReader, raw: JsonObject) {
  const hiddenSize = read.count('hidden_size', 1);
  const heads = read.count('num_attention_heads', 1);
  if (hiddenSize % (2 * heads) !== 0) {
    throw read.refused(`hidden_size ${hiddenSize} does not give num_attention_heads ${heads} heads of an even size`);
  }
  const layers = read.count('num_hidden_layers', 1);
  return {
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize,
    heads,
    intermediateSize: read.count('intermediate_size', 1),
    epsilon: read.epsilon('norm_eps', 1e-5),
    activation: read.choice('hidden_activation', ACTIVATIONS, 'gelu'),
    /** For each layer, whether a token sees only those at most `reach` positions away. */
    isLocal: localLayers(read, raw, layers),
    reach: Math.floor(read.count('local_attention', 2, 128) / 2),
    globalBase: rotaryBase(read, { part: 'full_attention', key: 'global_rope_theta', otherwise: 160_000 }),
    localBase: rotaryBase(read, { part: 'sliding_attention', key: 'local_rope_theta', otherwise: 10_000 }),
    attentionBias: read.flag('attention_bias', false),
    feedForwardBias: read.flag('mlp_bias', false),
    normBias: read.flag('norm_bias', false),
  };
}

/** Transformers 5 lists the kind of each layer; before, every n-th layer was global, beginning with the first. */
function localLayers(read: ConfigReader, raw: JsonObject, layers: number): readonly boolean[] {
  const { layer_types: types } = raw;
  if (types === undefined || types === null) {
    const every = read.count('global_attn_every_n_layers', 1, 3);
    return Array.from({ length: layers }, (_, i) => i % every !== 0);
  }
  const known = ['full_attention', 'sliding_attention'];
  if (!Array.isArray(types) || types.length !== layers || types.some((type) => !known.includes(type))) {
    throw read.refused(
      `layer_types is ${JSON.stringify(types)}; it must have ${layers} entries (num_hidden_layers), each of ${known.join(', ')}`,
    );
  }
  return types.map((type) => type === 'sliding_attention');
}

const WORDS = 'embeddings.tok_embeddings.weight';
const PREFIXES = ['', 'model.'];

type ModernBertWeights = ReturnType<typeof findWeights>;

function findWeights(weights: CheckpointWeights, config: ModernBertConfig) {
  const prefix = prefixOf(weights, WORDS, PREFIXES);
  checkLayers(weights, `${prefix}layers.`, config.isLocal.length, 'num_hidden_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner, attentionBias, feedForwardBias, normBias } = config;
  const norm = (name: string) => find.normWithBias(normBias, name, hidden);
  const layer = (name: string, isFirst: boolean) => {
    const projections = find.denseOrMatrix(attentionBias, `${name}.attn.Wqkv`, 3 * hidden, hidden);
    const inputs = find.denseOrMatrix(feedForwardBias, `${name}.mlp.Wi`, 2 * inner, hidden);
    // The gate goes through the activation.
    const [gate, up] = splitDense(inputs, [inner, inner]);
    return {
      /** Undefined in the first layer, whose input is normalised already. */
      attentionNorm: isFirst ? undefined : norm(`${name}.attn_norm`),
      projections: splitDense(projections, [hidden, hidden, hidden]),
      output: find.denseOrMatrix(attentionBias, `${name}.attn.Wo`, hidden, hidden),
      feedForwardNorm: norm(`${name}.mlp_norm`),
      gate: gate!,
      up: up!,
      down: find.denseOrMatrix(feedForwardBias, `${name}.mlp.Wo`, hidden, inner),
    };
  };
  return {
    words: find.weight(WORDS, [config.vocabularySize, hidden]),
    embeddingNorm: norm('embeddings.norm'),
    layers: config.isLocal.map((_, i) => layer(`layers.${i}`, i === 0)),
    norm: norm('final_norm'),
  };
}

/** logits = projection(norm(activation(dense(pooled)))). */
type ModernBertHead = ReturnType<typeof findHead>;

function findHead(weights: CheckpointWeights, { hiddenSize: hidden, normBias }: ModernBertConfig, read: ConfigReader) {
  const find = new WeightFinder(weights, '');
  const labels = weights.get('classifier.weight')?.shape[0] ?? 1;
  return {
    pooling: read.choice('classifier_pooling', { cls: 'cls', mean: 'mean' } as const, 'cls'),
    activation: read.choice('classifier_activation', ACTIVATIONS, 'gelu'),
    dense: find.denseOrMatrix(read.flag('classifier_bias', false), 'head.dense', hidden, hidden),
    norm: find.normWithBias(normBias, 'head.norm', hidden),
    projection: find.dense('classifier', labels, hidden),
  };
}

function modernBertGraph(
  config: ModernBertConfig,
  weights: ModernBertWeights,
  precision: Precision,
  end: ModernBertHead | readonly DenseModule[],
): OnnxGraph {
  const { heads, hiddenSize, epsilon, activation } = config;
  const graph = new OnnxGraph('modernbert');
  const arithmetic = new GraphArithmetic(graph, precision, 'per-token');
  const norm = (name: string, input: string, weight: LayerNorm): string =>
    layerNorm(arithmetic, name, input, weight, epsilon);
  const ids = idsInput(arithmetic);
  const mask = maskInput(arithmetic);
  const tables = (base: number) => rotaryTables(arithmetic, ids, inverseFrequencies(base, hiddenSize / heads));
  const all = { rotary: tables(config.globalBase), scoreBias: '' };
  const near = config.isLocal.includes(true)
    ? { rotary: tables(config.localBase), scoreBias: windowBias(arithmetic, ids, config.reach) }
    : all;
  let hidden = norm('embeddings.norm', arithmetic.lookUp('words', weights.words, ids), weights.embeddingNorm);
  for (const [i, layer] of weights.layers.entries()) {
    const name = `layer.${i}`;
    const { rotary, scoreBias } = config.isLocal[i] === true ? near : all;
    const { attentionNorm } = layer;
    const normed = attentionNorm === undefined ? hidden : norm(`${name}.attention_norm`, hidden, attentionNorm);
    const [query, key, value] = arithmetic.denses(`${name}.attention`, normed, layer.projections);
    const turned = [query!, key!].map((part) => rotated(arithmetic, part, rotary));
    const context = attention(arithmetic, [...turned, value!], { heads, mask, scoreBias });
    const middle = sum(arithmetic, [hidden, arithmetic.dense(`${name}.attention_output`, context, layer.output)]);
    const inner = norm(`${name}.feed_forward_norm`, middle, layer.feedForwardNorm);
    const output = gatedFeedForward(arithmetic, `${name}.feed_forward`, inner, layer, activation);
    hidden = sum(arithmetic, [middle, output]);
  }
  hidden = norm('norm', hidden, weights.norm);
  if (!('projection' in end)) {
    tokenOutput(arithmetic, hidden, hiddenSize, end);
    return graph;
  }
  const pooled = end.pooling === 'cls' ? firstToken(arithmetic, hidden) : meanOfTokens(arithmetic, hidden, mask);
  const value = arithmetic.smallDense('head.dense', pooled, end.dense);
  const features = norm('head.norm', activated(arithmetic, { value, bias: '' }, end.activation), end.norm);
  const logits = arithmetic.smallDense('classifier', features, end.projection);
  arithmetic.output('logits', logits, [BATCH, end.projection.weight.shape[0]!]);
  return graph;
}
