import { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';

/**
 * Refuses an encoder that would give other vectors than those the index holds. Another precision of the same checkpoint
 * and tokenizer gives nearly the same ones: float32 in place of float16, or the reverse, is taken; int8 in place of either,
 * or the reverse, only where the precision was asked for (`precisionAsked`). What differs is returned for a remark, null
 * where nothing does.
 *
 * @throws TrawlError MODEL_MISMATCH naming both models and what differs.
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
  const bothFloat = index.precision !== 'int8' && encoder.precision !== 'int8';
  if (isSameSource && onlyPrecision && index.precision !== encoder.precision && (bothFloat || precisionAsked)) {
    return `The index was made in ${index.precision}, queries are embedded in ${encoder.precision}: scores differ a little.`;
  }
  const wayOut =
    isSameSource && onlyPrecision
      ? `It is the same checkpoint: --precision ${encoder.precision} takes it nevertheless, --precision ${index.precision} the graph of the index.`
      : 'Name the model of the index with --model, or build the index again with this one.';
  throw new TrawlError(
    'MODEL_MISMATCH',
    `The index was made with ${index.name}, the query encoder is ${encoder.name}; they differ in ` +
      `${differences.map(({ field, index: a, encoder: b }) => `${field} (index ${a}, encoder ${b})`).join(', ')}. ${wayOut}`,
    { details: { index: index.name, encoder: encoder.name, fields: differences.map(({ field }) => field) } },
  );
}

function differingFields(a: ModelIdentity, b: ModelIdentity): { field: string; index: string; encoder: string }[] {
  const facts = (model: ModelIdentity): Record<string, unknown> => ({
    sha256: model.sha256.slice(0, 12),
    architecture: model.architecture,
    dimension: model.dimension,
    pooling: model.pooling,
    normalize: model.normalize,
    precision: model.precision,
    'query prefix': model.prefixes.query,
    'passage prefix': model.prefixes.passage,
    'query tokens': model.maxTokens.query,
    'passage tokens': model.maxTokens.passage,
  });
  const left = facts(a);
  const right = facts(b);
  return Object.keys(left)
    .filter((field) => left[field] !== right[field])
    .map((field) => ({ field, index: JSON.stringify(left[field]), encoder: JSON.stringify(right[field]) }));
}
