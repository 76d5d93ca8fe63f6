import { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';

/**
 * Refuses an encoder that would give other vectors than those the index holds.
 *
 * @throws TrawlError MODEL_MISMATCH naming both models and what differs.
 */
export function checkSameModel(index: ModelIdentity, encoder: ModelIdentity): void {
  const differences = differingFields(index, encoder);
  if (differences.length === 0) return;
  throw new TrawlError(
    'MODEL_MISMATCH',
    `The index was made with ${index.name}, the query encoder is ${encoder.name}; they differ in ` +
      `${differences.map(({ field, index: a, encoder: b }) => `${field} (index ${a}, encoder ${b})`).join(', ')}. ` +
      'Name the model of the index with --model, or build the index again with this one.',
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
