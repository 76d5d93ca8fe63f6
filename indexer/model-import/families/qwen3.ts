import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import type { CheckpointWeights, Weight } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { AnswerIds, EncoderFamily } from '../encoder-family.ts';
import { differenceOfRows } from '../fused-weights.ts';
import { GraphArithmetic } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention, repeatedHeads } from '../parts/attention.ts';
import { gatedFeedForward } from '../parts/feed-forward.ts';
import { idsInput, tokenOutput, tokenScores } from '../parts/inputs-and-outputs.ts';
import { rmsNorm, sum } from '../parts/norms.ts';
import { inverseFrequencies, rotaryBase, rotaryTables, rotated } from '../parts/rotary.ts';
import { checkLayers, type Dense, prefixOf, WeightFinder } from '../weight-finder.ts';

/**
 * Qwen3-Embedding: a decoder whose last token's vector is the text's. Input: `input_ids` alone, because no token sees those after
 * it, so padding on the right changes nothing. Qwen3-Reranker: the same decoder, whose last token's vector gives a score.
 */
export const QWEN3_FAMILY: EncoderFamily = {
  modelTypes: ['qwen3'],
  examples: 'Qwen3-Embedding, Qwen3-Reranker',
  parse: (raw, path) => {
    const config = parseConfig(raw, path);
    return {
      modelType: 'qwen3',
      vocabularySize: config.vocabularySize,
      generatesText: true,
      // Not the eos_token of the config, which ends a turn of a chat.
      endToken: '<|endoftext|>',
      encoder: (weights) => {
        const found = findWeights(weights, config);
        return (precision, modules) => qwen3Graph(config, found, precision, modules);
      },
      crossEncoder: (weights, answers) => {
        const found = findWeights(weights, config);
        const head = findHead(weights, config, found.words, answers);
        return { labels: head.weight.shape[0]!, graph: (precision) => qwen3Graph(config, found, precision, head) };
      },
    };
  },
};

type Qwen3Config = ReturnType<typeof parseConfig>;

function parseConfig(raw: JsonObject, path: string) {
  const read = new ConfigReader(raw, path);
  read.require('use_sliding_window', false);
  read.require('hidden_act', 'silu');
  const heads = read.count('num_attention_heads', 1);
  const keyHeads = read.count('num_key_value_heads', 1, heads);
  if (heads % keyHeads !== 0) {
    throw read.refused(`num_attention_heads ${heads} is not a multiple of num_key_value_heads ${keyHeads}`);
  }
  const headSize = read.count('head_dim', 2, 128);
  if (headSize % 2 !== 0) throw read.refused(`head_dim ${headSize} is odd; rotary positions need an even size`);
  return {
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize: read.count('hidden_size', 1),
    layers: read.count('num_hidden_layers', 1),
    heads,
    /** Heads of keys and values; each serves heads / keyHeads heads of queries. */
    keyHeads,
    /** Values of a head; need not be hiddenSize / heads. */
    headSize,
    intermediateSize: read.count('intermediate_size', 1),
    epsilon: read.epsilon('rms_norm_eps', 1e-6),
    rotaryBase: rotaryBase(read, { otherwise: 10_000 }),
    /** Whether query, key, value and output projections have a bias. */
    hasBias: read.flag('attention_bias', false),
    /** Whether the word table is the language model's head; undefined if the config does not say it. */
    isTied: read.value('tie_word_embeddings') === undefined ? undefined : read.flag('tie_word_embeddings', false),
  };
}

const WORDS = 'embed_tokens.weight';

type Qwen3Weights = ReturnType<typeof findWeights>;

function findWeights(weights: CheckpointWeights, config: Qwen3Config) {
  const prefix = prefixOf(weights, WORDS, ['', 'model.']);
  checkLayers(weights, `${prefix}layers.`, config.layers, 'num_hidden_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner, headSize, hasBias } = config;
  const queries = config.heads * headSize;
  const keys = config.keyHeads * headSize;
  const layer = (name: string) => ({
    inputNorm: find.weight(`${name}.input_layernorm.weight`, [hidden]),
    query: find.denseOrMatrix(hasBias, `${name}.self_attn.q_proj`, queries, hidden),
    key: find.denseOrMatrix(hasBias, `${name}.self_attn.k_proj`, keys, hidden),
    value: find.denseOrMatrix(hasBias, `${name}.self_attn.v_proj`, keys, hidden),
    output: find.denseOrMatrix(hasBias, `${name}.self_attn.o_proj`, hidden, queries),
    queryNorm: find.weight(`${name}.self_attn.q_norm.weight`, [headSize]),
    keyNorm: find.weight(`${name}.self_attn.k_norm.weight`, [headSize]),
    feedForwardNorm: find.weight(`${name}.post_attention_layernorm.weight`, [hidden]),
    gate: find.matrix(`${name}.mlp.gate_proj`, inner, hidden),
    up: find.matrix(`${name}.mlp.up_proj`, inner, hidden),
    down: find.matrix(`${name}.mlp.down_proj`, hidden, inner),
  });
  return {
    words: find.weight(WORDS, [config.vocabularySize, hidden]),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`layers.${i}`)),
    norm: find.weight('norm.weight', [hidden]),
  };
}

const LANGUAGE_MODEL_HEAD = 'lm_head.weight';

/**
 * What turns the last token's vector into the score: the head of a conversion to …ForSequenceClassification, or the difference of the
 * answers' rows in the language model's head. The word table is that head if the config ties them, or says nothing and the checkpoint
 * has no head.
 */
function findHead(
  weights: CheckpointWeights,
  { vocabularySize, hiddenSize, isTied }: Qwen3Config,
  words: Weight,
  answers: AnswerIds | undefined,
): Dense {
  const find = new WeightFinder(weights, '');
  if (answers === undefined) return find.matrix('score', weights.get('score.weight')?.shape[0] ?? 1, hiddenSize);
  const head =
    (isTied ?? !find.has(LANGUAGE_MODEL_HEAD)) ? words : find.weight(LANGUAGE_MODEL_HEAD, [vocabularySize, hiddenSize]);
  return { weight: differenceOfRows(head, answers.yes, answers.no) };
}

/** With Dense modules the graph of an encoder, with a head the graph of a reranker. */
function qwen3Graph(
  config: Qwen3Config,
  weights: Qwen3Weights,
  precision: Precision,
  ending: readonly DenseModule[] | Dense,
): OnnxGraph {
  const { heads, keyHeads, headSize: size, epsilon, hiddenSize } = config;
  const graph = new OnnxGraph('qwen3');
  const arithmetic = new GraphArithmetic(graph, precision, 'per-token');
  const norm = (name: string, input: string, weight: Weight): string =>
    rmsNorm(arithmetic, name, input, weight, epsilon);
  const ids = idsInput(arithmetic);
  const rotary = rotaryTables(arithmetic, ids, inverseFrequencies(config.rotaryBase, size));
  /** The RMS norm of each head's vector, with the same weights for every head, turned by its position. */
  const turned = (name: string, value: string, weight: Weight, count: number): string => {
    const normed = norm(name, graph.node('Reshape', [value, graph.integers([0, 0, count, size])]), weight);
    const joined = graph.node('Reshape', [normed, graph.integers([0, 0, count * size])]);
    return rotated(arithmetic, joined, rotary);
  };
  const shared = { query: heads, shared: keyHeads, size };
  let hidden = arithmetic.lookUp('words', weights.words, ids);
  for (const [i, layer] of weights.layers.entries()) {
    const name = `layer.${i}`;
    const normed = norm(`${name}.input_norm`, hidden, layer.inputNorm);
    const projections = [layer.query, layer.key, layer.value];
    const [query, key, value] = arithmetic.denses(`${name}.attention`, normed, projections);
    const values = [
      turned(`${name}.query_norm`, query!, layer.queryNorm, heads),
      repeatedHeads(arithmetic, turned(`${name}.key_norm`, key!, layer.keyNorm, keyHeads), shared),
      repeatedHeads(arithmetic, value!, shared),
    ];
    const context = attention(arithmetic, values, { heads, mask: '', isCausal: true });
    const middle = sum(arithmetic, [hidden, arithmetic.dense(`${name}.attention_output`, context, layer.output)]);
    const inner = norm(`${name}.feed_forward_norm`, middle, layer.feedForwardNorm);
    hidden = sum(arithmetic, [middle, gatedFeedForward(arithmetic, `${name}.feed_forward`, inner, layer, 'silu')]);
  }
  const normed = norm('norm', hidden, weights.norm);
  if ('weight' in ending) tokenScores(arithmetic, normed, ending);
  else tokenOutput(arithmetic, normed, hiddenSize, ending);
  return graph;
}
