import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import type { DenseModule } from '../dense-modules.ts';
import type { EncoderFamily } from '../encoder-family.ts';
import { GraphArithmetic, type Product } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention } from '../parts/attention.ts';
import { activated } from '../parts/feed-forward.ts';
import { BATCH, firstToken, idsInput, keyMask, tokenOutput, typesInput } from '../parts/inputs-and-outputs.ts';
import { layerNorm, sum } from '../parts/norms.ts';
import type { Dense, LayerNorm } from '../weight-finder.ts';
import { addedRows } from '../weight-tensors.ts';
import { bertNativeRefusal, bertNativeWeights } from './bert-native.ts';
import {
  type BertConfig,
  type BertWeights,
  type ClassifierWeights,
  findBertWeights,
  findClassifier,
  parseBertConfig,
  ROBERTA_VARIANTS,
} from './bert-weights.ts';

/** BERT, RoBERTa and XLM-R, with absolute positions. */
export const BERT_FAMILY: EncoderFamily = {
  // `dpr` is BERT with another head.
  modelTypes: ['bert', ...ROBERTA_VARIANTS, 'dpr'],
  examples: 'E5, BGE, MiniLM',
  parse: (raw, path) => {
    const config = parseBertConfig(raw, path);
    return {
      modelType: config.modelType,
      vocabularySize: config.vocabularySize,
      encoder: (weights) => {
        const found = findBertWeights(weights, config);
        return (precision, modules) => bertGraph(config, found, precision, modules);
      },
      engine: {
        refusal: bertNativeRefusal(config),
        weights: (weights, precision) => bertNativeWeights(config, findBertWeights(weights, config), precision),
      },
      crossEncoder: (weights) => {
        const found = findBertWeights(weights, config);
        const classifier = findClassifier(weights, config);
        return {
          labels: classifier.projection.weight.shape[0]!,
          graph: (precision) => bertGraph(config, found, precision, classifier),
        };
      },
    };
  },
};

/**
 * Builds the ONNX graph of a BERT-family encoder.
 *
 * Inputs, int64 [batch, sequence]: `input_ids`; `attention_mask` (1 for a token, 0 for padding on the right);
 * `token_type_ids` if the model has more than one token type. Outputs, float32: `last_hidden_state` [batch, sequence,
 * hidden], and `pooler_output` [batch, hidden] if the checkpoint has a pooler. With a classifier, the only output is
 * `logits` [batch, labels].
 *
 * docs/models.md compares the speed of these and other operators on one CPU thread.
 */
function bertGraph(
  config: BertConfig,
  weights: BertWeights,
  precision: Precision,
  end: ClassifierWeights | readonly DenseModule[],
): OnnxGraph {
  const { heads, hiddenSize, activation, layerNormEpsilon } = config;
  const graph = new OnnxGraph(config.modelType);
  const arithmetic = new GraphArithmetic(graph, precision, 'per-run');
  const sumNorm = (name: string, parts: readonly string[], norm: LayerNorm): string =>
    layerNorm(arithmetic, name, sum(arithmetic, parts), norm, layerNormEpsilon);
  const residual = (name: string, { value, bias }: Product, input: string, norm: LayerNorm): string =>
    sumNorm(name, bias === '' ? [value, input] : [value, bias, input], norm);

  const ids = idsInput(arithmetic);
  const mask = keyMask(arithmetic);
  let hidden = sumNorm('embeddings.norm', embeddings(arithmetic, config, weights, ids), weights.embeddingNorm);
  for (const [i, layer] of weights.layers.entries()) {
    const name = `layer.${i}`;
    const { values, bias } = arithmetic.products(`${name}.attention`, hidden, [layer.query, layer.key, layer.value]);
    const context = attention(arithmetic, values, { heads, bias, mask });
    const attended = arithmetic.product(`${name}.attention_output`, context, [layer.attentionOutput]);
    const middle = residual(`${name}.attention_norm`, attended, hidden, layer.attentionNorm);
    const inner = activated(
      arithmetic,
      arithmetic.product(`${name}.intermediate`, middle, [layer.intermediate]),
      activation,
    );
    const output = arithmetic.product(`${name}.output`, inner, [layer.output]);
    hidden = residual(`${name}.output_norm`, output, middle, layer.outputNorm);
  }

  /** tanh(dense(first token)): [batch, outputs]. */
  const tanhLayer = (name: string, dense: Dense): string =>
    graph.node('Tanh', [arithmetic.smallDense(name, firstToken(arithmetic, hidden), dense)]);
  if ('projection' in end) {
    const logits = arithmetic.smallDense(
      'classifier.projection',
      tanhLayer('classifier.dense', end.dense),
      end.projection,
    );
    arithmetic.output('logits', logits, [BATCH, end.projection.weight.shape[0]!]);
    return graph;
  }
  tokenOutput(arithmetic, hidden, hiddenSize, end);
  if (weights.pooler !== undefined) {
    arithmetic.output('pooler_output', tanhLayer('pooler', weights.pooler), [BATCH, hiddenSize]);
  }
  return graph;
}

/** The embeddings whose sum a token begins with: word, token type and position. */
function embeddings(arithmetic: GraphArithmetic, config: BertConfig, weights: BertWeights, ids: string): string[] {
  const { words, positions, tokenTypes } = weights;
  const word = arithmetic.lookUp('words', words, ids);
  if (tokenTypes === undefined) {
    return [word, positionRows(arithmetic, config, arithmetic.stored('positions', positions), ids)];
  }
  // A single token type adds the same row to every token, so it is added to the position table at import.
  if (config.tokenTypeRows === 1) {
    const table = arithmetic.constant(addedRows('positions', positions, tokenTypes));
    return [word, positionRows(arithmetic, config, table, ids)];
  }
  const table = arithmetic.stored('positions', positions);
  const types = typesInput(arithmetic);
  const type = arithmetic.graph.node('Gather', [arithmetic.stored('token_types', tokenTypes), types]);
  return [word, type, positionRows(arithmetic, config, table, ids)];
}

function positionRows(
  { graph }: GraphArithmetic,
  { positionPadding: padding }: BertConfig,
  table: string,
  ids: string,
): string {
  if (padding === undefined) {
    const length = graph.node('Shape', [ids], { attributes: { start: 1, end: 2 } });
    return graph.node('Slice', [table, graph.integers([0]), length, graph.integers([0])]);
  }
  // As create_position_ids_from_input_ids in Transformers' RoBERTa: padding tokens get the padding row and are not counted.
  const isPadding = graph.node('Equal', [ids, graph.integers([padding], [])]);
  const counts = graph.cast(graph.node('Not', [isPadding]), 'int64');
  const running = graph.node('CumSum', [counts, graph.integers([1], [])]);
  const positions = graph.node('Add', [graph.node('Mul', [running, counts]), graph.integers([padding], [])]);
  return graph.node('Gather', [table, positions]);
}
