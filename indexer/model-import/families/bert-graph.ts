import type { Precision } from '../../../src/encoder/identity/model-identity.ts';
import { ONNX_TYPES } from '../../../src/encoder/model/onnx-messages.ts';
import type { DenseModule } from '../dense-modules.ts';
import { GraphArithmetic, type Product } from '../graph-arithmetic.ts';
import { OnnxGraph } from '../onnx-graph.ts';
import { attention } from '../parts/attention.ts';
import { activated } from '../parts/feed-forward.ts';
import { BATCH, idsInput, keyMask, tokenOutput, typesInput } from '../parts/inputs.ts';
import { layerNorm, sum } from '../parts/norms.ts';
import { firstToken } from '../parts/pooled.ts';
import type { Dense, LayerNorm } from '../weight-finder.ts';
import { addedRows } from '../weight-tensors.ts';
import type { BertConfig } from './bert-config.ts';
import type { BertLayer, BertWeights, ClassifierWeights } from './bert-weights.ts';

/**
 * Builds the ONNX graph of a BERT-family encoder.
 *
 * Inputs, int64 [batch, sequence]: `input_ids`; `attention_mask` (1 for a token, 0 for padding on the right);
 * `token_type_ids` if the model has more than one token type. Outputs, float32: `last_hidden_state` [batch, sequence,
 * hidden], and `pooler_output` [batch, hidden] if the checkpoint has a pooler. With a classifier, the only output is
 * `logits` [batch, labels].
 *
 * docs/models.md compares the speed of these operators with that of others, on one CPU thread.
 */
export function bertGraph(
  config: BertConfig,
  weights: BertWeights,
  precision: Precision,
  end: ClassifierWeights | readonly DenseModule[],
): OnnxGraph {
  const graph = new OnnxGraph(config.modelType);
  const build = new BertGraphBuilder(graph, config, precision);
  const hidden = build.encoder(weights);
  if ('projection' in end) build.classifier(hidden, end);
  else build.outputs(hidden, weights, end);
  return graph;
}

class BertGraphBuilder {
  readonly #graph: OnnxGraph;
  readonly #config: BertConfig;
  readonly #arithmetic: GraphArithmetic;

  constructor(graph: OnnxGraph, config: BertConfig, precision: Precision) {
    this.#graph = graph;
    this.#config = config;
    this.#arithmetic = new GraphArithmetic(graph, precision, 'per-run');
  }

  encoder(weights: BertWeights): string {
    const ids = idsInput(this.#arithmetic);
    const mask = keyMask(this.#arithmetic);
    let hidden = this.#embeddings(weights, ids);
    for (const [i, layer] of weights.layers.entries()) hidden = this.#layer(`layer.${i}`, layer, hidden, mask);
    return hidden;
  }

  outputs(hidden: string, weights: BertWeights, modules: readonly DenseModule[]): void {
    const { hiddenSize } = this.#config;
    tokenOutput(this.#arithmetic, hidden, hiddenSize, modules);
    if (weights.pooler === null) return;
    this.#arithmetic.output('pooler_output', this.#tanhLayer('pooler', hidden, weights.pooler), [BATCH, hiddenSize]);
  }

  classifier(hidden: string, { dense, projection }: ClassifierWeights): void {
    const features = this.#tanhLayer('classifier.dense', hidden, dense);
    const logits = this.#arithmetic.smallDense('classifier.projection', features, projection);
    this.#arithmetic.output('logits', logits, [BATCH, projection.weight.shape[0]!]);
  }

  #embeddings(weights: BertWeights, ids: string): string {
    const graph = this.#graph;
    const arithmetic = this.#arithmetic;
    const { tokenTypes } = weights;
    const parts = [arithmetic.lookUp('words', weights.words, ids)];
    // A single token type adds the same row to every token, so it is added to the position table at import.
    const isConstant = tokenTypes !== null && this.#config.tokenTypeRows === 1;
    const positions = isConstant
      ? arithmetic.constant(addedRows('positions', weights.positions, tokenTypes))
      : arithmetic.stored('positions', weights.positions);
    if (tokenTypes !== null && !isConstant) {
      const types = typesInput(arithmetic);
      parts.push(graph.node('Gather', [arithmetic.stored('token_types', tokenTypes), types]));
    }
    parts.push(this.#positions(positions, ids));
    return this.#sumNorm('embeddings.norm', parts, weights.embeddingNorm);
  }

  #positions(table: string, ids: string): string {
    const graph = this.#graph;
    const { positionPadding: padding } = this.#config;
    if (padding === null) {
      const length = graph.node('Shape', [ids], { attributes: { start: 1, end: 2 } });
      return graph.node('Slice', [table, graph.integers([0]), length, graph.integers([0])]);
    }
    // As create_position_ids_from_input_ids in Transformers' RoBERTa: padding tokens get the padding row and are not counted.
    const isPadding = graph.node('Equal', [ids, graph.integers([padding], [])]);
    const counts = graph.node('Cast', [graph.node('Not', [isPadding])], { attributes: { to: ONNX_TYPES.int64.code } });
    const running = graph.node('CumSum', [counts, graph.integers([1], [])]);
    const positions = graph.node('Add', [graph.node('Mul', [running, counts]), graph.integers([padding], [])]);
    return graph.node('Gather', [table, positions]);
  }

  #layer(name: string, layer: BertLayer, input: string, mask: string): string {
    const arithmetic = this.#arithmetic;
    const { values, bias } = arithmetic.products(`${name}.attention`, input, [layer.query, layer.key, layer.value]);
    const context = attention(arithmetic, values, { heads: this.#config.heads, bias, mask });
    const attended = arithmetic.product(`${name}.attention_output`, context, [layer.attentionOutput]);
    const middle = this.#residual(`${name}.attention_norm`, attended, input, layer.attentionNorm);
    const intermediate = arithmetic.product(`${name}.intermediate`, middle, [layer.intermediate]);
    const inner = activated(arithmetic, intermediate, this.#config.activation);
    const output = arithmetic.product(`${name}.output`, inner, [layer.output]);
    return this.#residual(`${name}.output_norm`, output, middle, layer.outputNorm);
  }

  #residual(name: string, { value, bias }: Product, input: string, norm: LayerNorm): string {
    return this.#sumNorm(name, bias === '' ? [value, input] : [value, bias, input], norm);
  }

  #sumNorm(name: string, parts: readonly string[], norm: LayerNorm): string {
    return layerNorm(this.#arithmetic, name, sum(this.#arithmetic, parts), norm, this.#config.layerNormEpsilon);
  }

  /** tanh(dense(first token)): [batch, outputs]. */
  #tanhLayer(name: string, hidden: string, dense: Dense): string {
    const first = firstToken(this.#arithmetic, hidden);
    return this.#graph.node('Tanh', [this.#arithmetic.smallDense(name, first, dense)]);
  }
}
