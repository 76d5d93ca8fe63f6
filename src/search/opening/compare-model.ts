import { TrawlError } from '../../base/errors.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity } from '../../encoder/identity/model-identity.ts';

/**
 * Refuses an encoder whose vectors would differ from the vectors of the index. The same weights and tokenizer in another precision give
 * nearly equal vectors: float32 and float16 may replace each other, int8 and bfloat16 only if the user chose the precision
 * (`precisionAsked`), and so the two graphs in int8, one for onnxruntime and one for the engine. Returns a warning if only the precision or
 * the graph in int8 differs, and null if nothing differs.
 *
 * @throws TrawlError MODEL_MISMATCH with both models and the fields that differ.
 */
export function checkSameModel(
  index: ModelIdentity,
  encoder: ModelIdentity,
  { precisionAsked = false }: { precisionAsked?: boolean } = {},
): string | null {
  const differences = differingFields(index, encoder);
  if (differences.length === 0) return null;
  const isSameSource = index.sourceSha256 !== undefined && index.sourceSha256 === encoder.sourceSha256;
  const onlyPrecision = differences.every(({ field }) => field === 'sha256' || field === 'precision');
  const replaceable = [index.precision, encoder.precision].every((one) => one === 'float32' || one === 'float16');
  const isOtherGraph = isSameSource && onlyPrecision && index.precision === encoder.precision;
  const isInt8 = index.precision === 'int8';
  if (isOtherGraph && isInt8 && precisionAsked) {
    return 'The index was embedded in int8 by another graph of the same weights than the one that embeds queries: scores differ slightly.';
  }
  if (isSameSource && onlyPrecision && index.precision !== encoder.precision && (replaceable || precisionAsked)) {
    return `The index was embedded in ${index.precision}, but queries are embedded in ${encoder.precision}: scores differ slightly. docs/models.md (recall by precision) has the measured agreement.`;
  }
  const wayOut =
    isSameSource && onlyPrecision
      ? isOtherGraph
        ? `Both have the same weights in ${index.precision}, but not the same graph of them: ${isInt8 ? 'onnxruntime runs one and the engine the other, or ' : ''}they were added by different versions of Trawl. Pass the model of the index with --model, or build the index again${isInt8 ? ', or accept the difference with --precision int8' : ''}.`
        : `Both have the same weights: use --precision ${index.precision}, or accept the difference with --precision ${encoder.precision}.`
      : 'Pass the model of the index with --model, or build the index again with this model.';
  throw new TrawlError(
    'MODEL_MISMATCH',
    `The index was built with ${index.name}, but the query encoder is ${encoder.name}. They differ in ` +
      `${differences.map(({ field, index: a, encoder: b }) => `${field} (index ${a}, encoder ${b})`).join(', ')}. ${wayOut}`,
    { details: { index: index.name, encoder: encoder.name, fields: differences.map(({ field }) => field) } },
  );
}

function differingFields(a: ModelIdentity, b: ModelIdentity): { field: string; index: string; encoder: string }[] {
  const facts = (model: ModelIdentity): Record<string, unknown> => ({
    sha256: model.sha256.slice(0, 12),
    architecture: model.architecture,
    dimension: model.dimension,
    'full dimension': model.fullDimension ?? null,
    // Absent in the indexes of earlier versions, whose vectors were truncated without it.
    'step before truncation': model.beforeTruncation ?? null,
    pooling: model.pooling,
    normalize: model.normalize,
    precision: model.precision,
    'query prefix': model.prefixes.query,
    'passage prefix': model.prefixes.passage,
    'query template': model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    'query tokens': model.maxTokens.query,
    'passage tokens': model.maxTokens.passage,
  });
  const left = facts(a);
  const right = facts(b);
  return Object.keys(left)
    .filter((field) => left[field] !== right[field])
    .map((field) => ({ field, index: JSON.stringify(left[field]), encoder: JSON.stringify(right[field]) }));
}
