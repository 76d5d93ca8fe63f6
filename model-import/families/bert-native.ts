import { TrawlError } from '../../src/errors.ts';
import { bytesPart, denseParts, floatsPart, type NativePart, normPart } from '../native-weights.ts';
import type { Activation } from '../parts/feed-forward.ts';
import type { BertConfig } from './bert-config.ts';
import type { BertWeights } from './bert-weights.ts';

/** Sizes that the native encoder divides into groups of float32 values. */
const LANES = 16;
const MOST_LAYERS = 4096;
/** Most values of a hidden or intermediate layer, and rows of a table. */
const WIDEST = 2 ** 16;
const MOST_ROWS = 2 ** 24;
const HEADER_BYTES = 128;
const VERSION = 1;
const ACTIVATION_NUMBERS: Readonly<Partial<Record<Activation, number>>> = { gelu: 0, 'gelu-tanh': 1, relu: 2 };

/**
 * The file of weights of the native forward pass in bfloat16; native/src/encoder/bert_file.hpp describes it.
 *
 * @throws TrawlError CONFIG_INVALID if the native encoder does not compute this shape.
 */
export function bertNativeWeights(config: BertConfig, weights: BertWeights): readonly NativePart[] {
  checkShape(config);
  const { words, positions, tokenTypes, embeddingNorm, layers } = weights;
  return [
    bytesPart(header(config)),
    floatsPart([words]),
    floatsPart([positions]),
    ...(tokenTypes === null ? [] : [floatsPart([tokenTypes])]),
    normPart(embeddingNorm),
    ...layers.flatMap((layer) => [
      ...denseParts([layer.query, layer.key, layer.value]),
      ...denseParts([layer.attentionOutput]),
      normPart(layer.attentionNorm),
      ...denseParts([layer.intermediate]),
      ...denseParts([layer.output]),
      normPart(layer.outputNorm),
    ]),
  ];
}

/** The bounds of `check` in native/src/encoder/bert_file.cpp. Throws CONFIG_INVALID. */
function checkShape(config: BertConfig): void {
  const { hiddenSize, heads, intermediateSize, activation } = config;
  const headSize = hiddenSize / heads;
  if ([hiddenSize, headSize, intermediateSize].some((size) => size % LANES !== 0)) {
    throw refused(
      `bfloat16 needs sizes that are multiples of ${LANES}, but the model has hidden_size ${hiddenSize}, ${headSize} values a head and ` +
        `intermediate_size ${intermediateSize}`,
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
    if (value < least || value > most) throw refused(`bfloat16 takes a ${name} of ${least} to ${most}, not ${value}`);
  }
  if (ACTIVATION_NUMBERS[activation] === undefined) {
    const known = Object.keys(ACTIVATION_NUMBERS).join(', ');
    throw refused(`bfloat16 takes the activations ${known}, not ${activation}`);
  }
}

function refused(reason: string): TrawlError {
  return new TrawlError('CONFIG_INVALID', `${reason}. Ask for float32 or int8.`);
}

function header(config: BertConfig): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode('TRAWLBRT'));
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
