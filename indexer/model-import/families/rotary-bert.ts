import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import type { CheckpointWeights } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { EncoderFamily } from '../encoder-family.ts';
import { splitDense } from '../fused-weights.ts';
import { GraphArithmetic } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention } from '../parts/attention.ts';
import { ACTIVATIONS, type Activation, gatedFeedForward } from '../parts/feed-forward.ts';
import { idsInput, maskInput, tokenOutput, typesInput } from '../parts/inputs-and-outputs.ts';
import { layerNorm, sum } from '../parts/norms.ts';
import { inverseFrequencies, rotaryBase, rotaryTables, rotated } from '../parts/rotary.ts';
import { checkLayers, type LayerNorm, prefixOf, WeightFinder } from '../weight-finder.ts';

interface RotaryBertConfig {
  readonly modelType: string;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediateSize: number;
  readonly epsilon: number;
  readonly activation: Activation;
  readonly frequencies: readonly number[];
  readonly tokenTypeRows: number;
  readonly attentionBias: boolean;
  /** Whether the last product of the feed-forward layers has a bias. */
  readonly downBias: boolean;
}

/** nomic-embed-text and gte-v1.5: BERT's layers, with rotary positions and gated feed-forward layers. */
export const ROTARY_BERT_FAMILY: EncoderFamily = {
  modelTypes: ['nomic_bert', 'new', 'gte'],
  examples: 'nomic-embed-text v1 and v1.5, gte-base-en-v1.5, gte-multilingual-base',
  parse: (raw, path) => {
    const read = new ConfigReader(raw, path);
    const config = raw.model_type === 'nomic_bert' ? nomicConfig(read) : gteConfig(read, raw);
    return {
      modelType: config.modelType,
      vocabularySize: config.vocabularySize,
      encoder: (weights) => {
        const found = findWeights(weights, config);
        return (precision, modules) => rotaryBertGraph(config, found, precision, modules);
      },
    };
  },
};

/** The hub's config has the names of GPT-2; transformers 5 writes BERT's. */
function nomicConfig(read: ConfigReader): RotaryBertConfig {
  const either = (name: string, old: string, least: number, otherwise?: number) =>
    read.value(name) === undefined ? read.count(old, least, otherwise) : read.count(name, least);
  read.require('rotary_emb_fraction', 1);
  read.require('rotary_emb_interleaved', false);
  read.require('activation_function', 'swiglu');
  read.require('hidden_act', 'silu');
  for (const name of ['prenorm', 'qkv_proj_bias', 'mlp_fc1_bias', 'mlp_fc2_bias', 'use_rms_norm']) {
    read.require(name, false);
  }
  for (const name of ['num_experts', 'moe_every_n_layers']) read.require(name, 0);
  const hiddenSize = either('hidden_size', 'n_embd', 1);
  const heads = either('num_attention_heads', 'n_head', 1);
  return {
    modelType: 'nomic_bert',
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize,
    layers: either('num_hidden_layers', 'n_layer', 1),
    heads,
    intermediateSize: either('intermediate_size', 'n_inner', 1, 4 * hiddenSize),
    epsilon: read.epsilon(read.value('layer_norm_eps') === undefined ? 'layer_norm_epsilon' : 'layer_norm_eps', 1e-12),
    activation: 'silu',
    frequencies: inverseFrequencies(
      rotaryBase(read, { key: 'rotary_emb_base', otherwise: 1000 }),
      headSize(read, hiddenSize, heads),
    ),
    tokenTypeRows: read.count('type_vocab_size', 0, 2),
    attentionBias: false,
    downBias: false,
  };
}

function gteConfig(read: ConfigReader, raw: JsonObject): RotaryBertConfig {
  read.require('position_embedding_type', 'rope');
  read.require('layer_norm_type', 'layer_norm');
  read.require('logn_attention_scale', false);
  const hiddenSize = read.count('hidden_size', 1);
  const heads = read.count('num_attention_heads', 1);
  return {
    modelType: String(raw.model_type),
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize,
    layers: read.count('num_hidden_layers', 1),
    heads,
    intermediateSize: read.count('intermediate_size', 1),
    epsilon: read.epsilon('layer_norm_eps', 1e-12),
    activation: read.choice('hidden_act', ACTIVATIONS, 'gelu'),
    frequencies: gteFrequencies(read, headSize(read, hiddenSize, heads)),
    tokenTypeRows: read.count('type_vocab_size', 0, 1),
    attentionBias: true,
    downBias: true,
  };
}

function headSize(read: ConfigReader, hiddenSize: number, heads: number): number {
  const size = hiddenSize / heads;
  if (Number.isSafeInteger(size) && size % 2 === 0) return size;
  throw read.refused(`a hidden size of ${hiddenSize} does not give ${heads} attention heads of an even size`);
}

/** GTE stretches the positions of its pretraining by a factor ("ntk"): base × factor, and all frequencies / factor^(2 / size). */
function gteFrequencies(read: ConfigReader, size: number): readonly number[] {
  const scaling = (read.value('rope_scaling') ?? {}) as { readonly type?: unknown; readonly factor?: unknown };
  if (scaling.type !== 'ntk') return inverseFrequencies(rotaryBase(read, { otherwise: 160_000 }), size);
  const factor = read.positive('rope_scaling.factor', scaling.factor);
  const base = read.positive('rope_theta', read.value('rope_theta') ?? 160_000);
  return inverseFrequencies(base * factor, size).map((frequency) => frequency / factor ** (2 / size));
}

const WORDS = 'embeddings.word_embeddings.weight';
const PREFIXES = ['', 'new.', 'gte.', 'bert.', 'model.'];

/** Names of the tensors: of nomic's repositories, of GTE's, and those that transformers 5 gives both. */
interface Names {
  readonly embeddingNorm: string;
  readonly layers: string;
  readonly attentionNorm: string;
  readonly outputNorm: string;
  readonly attentionOutput: string;
  /** One tensor for query, key and value, or three. */
  readonly projections: string | readonly string[];
  /** Gate and up: two tensors, or one that holds up above gate. */
  readonly gateUp: string | readonly [string, string];
  readonly down: string;
}

const LAYOUTS: readonly Names[] = [
  {
    embeddingNorm: 'emb_ln',
    layers: 'encoder.layers.',
    attentionNorm: 'norm1',
    outputNorm: 'norm2',
    attentionOutput: 'attn.out_proj',
    projections: 'attn.Wqkv',
    gateUp: ['mlp.fc12', 'mlp.fc11'],
    down: 'mlp.fc2',
  },
  {
    embeddingNorm: 'embeddings.LayerNorm',
    layers: 'encoder.layer.',
    attentionNorm: 'attn_ln',
    outputNorm: 'mlp_ln',
    attentionOutput: 'attention.o_proj',
    projections: 'attention.qkv_proj',
    gateUp: 'mlp.up_gate_proj',
    down: 'mlp.down_proj',
  },
  {
    embeddingNorm: 'embeddings.LayerNorm',
    layers: 'layers.',
    attentionNorm: 'post_attention_layernorm',
    outputNorm: 'post_mlp_layernorm',
    attentionOutput: 'self_attn.o_proj',
    projections: ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'],
    gateUp: ['mlp.gate_proj', 'mlp.up_proj'],
    down: 'mlp.down_proj',
  },
];

type RotaryBertWeights = ReturnType<typeof findWeights>;

function findWeights(weights: CheckpointWeights, config: RotaryBertConfig) {
  const prefix = prefixOf(weights, WORDS, PREFIXES);
  const names =
    LAYOUTS.find(({ layers }) => weights.names.some((name) => name.startsWith(prefix + layers))) ??
    LAYOUTS[config.modelType === 'nomic_bert' ? 0 : 1]!;
  checkLayers(weights, prefix + names.layers, config.layers, 'the number of layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, tokenTypeRows } = config;
  return {
    words: find.weight(WORDS, [config.vocabularySize, hidden]),
    tokenTypes:
      tokenTypeRows === 0 ? undefined : find.weight('embeddings.token_type_embeddings.weight', [tokenTypeRows, hidden]),
    embeddingNorm: find.layerNorm(names.embeddingNorm, hidden),
    layers: Array.from({ length: config.layers }, (_, i) => findLayer(find, `${names.layers}${i}.`, names, config)),
  };
}

function findLayer(find: WeightFinder, layer: string, names: Names, config: RotaryBertConfig) {
  const { hiddenSize: hidden, intermediateSize: inner, attentionBias, downBias } = config;
  const { projections, gateUp } = names;
  const [gate, up] =
    typeof gateUp === 'string'
      ? splitDense(find.matrix(layer + gateUp, 2 * inner, hidden), [inner, inner]).reverse()
      : gateUp.map((name) => find.matrix(layer + name, inner, hidden));
  return {
    projections:
      typeof projections === 'string'
        ? splitDense(find.denseOrMatrix(attentionBias, layer + projections, 3 * hidden, hidden), [
            hidden,
            hidden,
            hidden,
          ])
        : projections.map((name) => find.denseOrMatrix(attentionBias, layer + name, hidden, hidden)),
    output: find.denseOrMatrix(attentionBias, layer + names.attentionOutput, hidden, hidden),
    attentionNorm: find.layerNorm(layer + names.attentionNorm, hidden),
    gate: gate!,
    up: up!,
    down: find.denseOrMatrix(downBias, layer + names.down, hidden, inner),
    outputNorm: find.layerNorm(layer + names.outputNorm, hidden),
  };
}

function rotaryBertGraph(
  config: RotaryBertConfig,
  weights: RotaryBertWeights,
  precision: Precision,
  modules: readonly DenseModule[],
): OnnxGraph {
  const { heads, hiddenSize, epsilon, activation } = config;
  const graph = new OnnxGraph(config.modelType);
  const arithmetic = new GraphArithmetic(graph, precision, 'per-token');
  const sumNorm = (name: string, parts: readonly string[], norm: LayerNorm): string =>
    layerNorm(arithmetic, name, sum(arithmetic, parts), norm, epsilon);
  const ids = idsInput(arithmetic);
  const mask = maskInput(arithmetic);
  const rotary = rotaryTables(arithmetic, ids, config.frequencies);
  const words = arithmetic.lookUp('words', weights.words, ids);
  let hidden: string;
  if (weights.tokenTypes === undefined) {
    hidden = layerNorm(arithmetic, 'embeddings.norm', words, weights.embeddingNorm, epsilon);
  } else {
    const table = arithmetic.stored('token_types', weights.tokenTypes);
    // A single row is added to every token.
    const types = config.tokenTypeRows === 1 ? table : graph.node('Gather', [table, typesInput(arithmetic)]);
    hidden = sumNorm('embeddings.norm', [words, types], weights.embeddingNorm);
  }
  for (const [i, layer] of weights.layers.entries()) {
    const name = `layer.${i}`;
    const [query, key, value] = arithmetic.denses(`${name}.attention`, hidden, layer.projections);
    const turned = [query!, key!].map((part) => rotated(arithmetic, part, rotary));
    const context = attention(arithmetic, [...turned, value!], { heads, mask });
    const attended = arithmetic.dense(`${name}.attention_output`, context, layer.output);
    const middle = sumNorm(`${name}.attention_norm`, [attended, hidden], layer.attentionNorm);
    const output = gatedFeedForward(arithmetic, `${name}.feed_forward`, middle, layer, activation);
    hidden = sumNorm(`${name}.output_norm`, [output, middle], layer.outputNorm);
  }
  tokenOutput(arithmetic, hidden, hiddenSize, modules);
  return graph;
}
