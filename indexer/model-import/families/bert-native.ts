import { invalidConfig } from '../../../src/encoder/model/json-file.ts';
import type { EnginePrecision } from '../../../src/engine/native/encoder-functions.ts';
import { bytesPart, denseParts, floatsPart, type NativePart, normPart } from '../native-weights.ts';
import type { Activation } from '../parts/feed-forward.ts';
import type { Dense } from '../weight-finder.ts';
import type { BertConfig, BertWeights } from './bert-weights.ts';

/** Sizes that the native encoder divides into groups of float32 values. */
const LANES = 16;
const MOST_LAYERS = 4096;
/** Most values of a hidden or intermediate layer, and rows of a table. */
const WIDEST = 2 ** 16;
const MOST_ROWS = 2 ** 24;
const HEADER_BYTES = 128;
const VERSION = 1;
const MAGICS: Readonly<Record<EnginePrecision, string>> = { bfloat16: 'TRAWLBRT', int8: 'TRAWLBI8' };
const ACTIVATION_NUMBERS: Readonly<Partial<Record<Activation, number>>> = { gelu: 0, 'gelu-tanh': 1, relu: 2 };

/**
 * The file of weights of the engine's forward pass; native/src/encoder/bert_file.hpp describes it.
 *
 * @throws TrawlError CONFIG_INVALID if the native encoder does not compute this shape.
 */
export function bertNativeWeights(
  config: BertConfig,
  weights: BertWeights,
  precision: EnginePrecision,
): readonly NativePart[] {
  const refusal = bertNativeRefusal(config);
  if (refusal !== undefined) throw invalidConfig(`${precision} ${refusal}. Ask for float32 or int8.`);
  const dense = (...of: readonly Dense[]) => denseParts(of, precision);
  const { words, positions, tokenTypes, embeddingNorm, layers } = weights;
  return [
    bytesPart(header(config, precision)),
    floatsPart([words]),
    floatsPart([positions]),
    ...(tokenTypes === undefined ? [] : [floatsPart([tokenTypes])]),
    normPart(embeddingNorm),
    ...layers.flatMap((layer) => [
      ...dense(layer.query, layer.key, layer.value),
      ...dense(layer.attentionOutput),
      normPart(layer.attentionNorm),
      ...dense(layer.intermediate),
      ...dense(layer.output),
      normPart(layer.outputNorm),
    ]),
  ];
}

/** Why the engine does not compute this shape; undefined if it does. `check` in native/src/encoder/bert_file.cpp has the same bounds. */
export function bertNativeRefusal(config: BertConfig): string | undefined {
  const { hiddenSize, heads, intermediateSize, activation } = config;
  const headSize = hiddenSize / heads;
  if ([hiddenSize, headSize, intermediateSize].some((size) => size % LANES !== 0)) {
    return (
      `needs sizes that are multiples of ${LANES}, but the model has hidden_size ${hiddenSize}, ${headSize} values a head and ` +
      `intermediate_size ${intermediateSize}`
    );
  }
  for (const [name, value, least, most] of [
    ['num_hidden_layers', config.layers, 1, MOST_LAYERS],
    ['hidden_size', hiddenSize, LANES, WIDEST],
    ['intermediate_size', intermediateSize, LANES, WIDEST],
    ['vocab_size', config.vocabularySize, 1, MOST_ROWS],
    ['max_position_embeddings', config.positionRows, 1, MOST_ROWS],
    ['type_vocab_size', config.tokenTypeRows, 0, MOST_ROWS],
    ['pad_token_id', config.positionPadding ?? 0, 0, MOST_ROWS],
  ] as const) {
    if (value < least || value > most) return `takes a ${name} of ${least} to ${most}, not ${value}`;
  }
  if (ACTIVATION_NUMBERS[activation] !== undefined) return undefined;
  return `takes the activations ${Object.keys(ACTIVATION_NUMBERS).join(', ')}, not ${activation}`;
}

function header(config: BertConfig, precision: EnginePrecision): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGICS[precision]));
  const fields = [
    VERSION,
    config.layers,
    config.hiddenSize,
    config.heads,
    config.intermediateSize,
    config.vocabularySize,
    config.positionRows,
    config.tokenTypeRows,
    ACTIVATION_NUMBERS[config.activation]!,
    config.positionPadding ?? -1,
  ];
  for (const [i, field] of fields.entries()) view.setInt32(8 + 4 * i, field, true);
  view.setFloat32(8 + 4 * fields.length, config.layerNormEpsilon, true);
  return bytes;
}
