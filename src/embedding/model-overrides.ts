import { TrawlError } from '../errors.ts';
import { type ModelIdentity, POOLINGS, type Pooling } from '../manifest/model-identity.ts';

/** What a user may set against a model's own description. Every one changes vectors, and so the identity. */
export interface ModelOverrides {
  readonly queryPrefix?: string | undefined;
  readonly passagePrefix?: string | undefined;
  readonly pooling?: Pooling | undefined;
  readonly normalize?: boolean | undefined;
  /** In tokens, special tokens and the prefix included: [3, the model's positions]. */
  readonly maxQueryTokens?: number | undefined;
  readonly maxPassageTokens?: number | undefined;
  /** Vectors are cut to their first values, then normalised where the model's are: [1, the model's dimension]. */
  readonly dimension?: number | undefined;
}

const KNOWN = [
  'queryPrefix',
  'passagePrefix',
  'pooling',
  'normalize',
  'maxQueryTokens',
  'maxPassageTokens',
  'dimension',
] as const;

/**
 * The identity with the overrides in it, frozen; it names those that say something else than the model. Throws
 * CONFIG_INVALID for an unknown name or a value that cannot be. `maxPositions`: most tokens that the model takes, null
 * where that is not known.
 */
export function applyOverrides(
  identity: ModelIdentity,
  overrides: ModelOverrides,
  maxPositions: number | null,
): ModelIdentity {
  const misspelt = Object.keys(overrides).find((key) => !(KNOWN as readonly string[]).includes(key));
  if (misspelt !== undefined) {
    throw new TrawlError('CONFIG_INVALID', `Unknown model override "${misspelt}"; known are ${KNOWN.join(', ')}.`);
  }
  const own: Required<{ [name in (typeof KNOWN)[number]]: unknown }> = {
    queryPrefix: identity.prefixes.query,
    passagePrefix: identity.prefixes.passage,
    pooling: identity.pooling,
    normalize: identity.normalize,
    maxQueryTokens: identity.maxTokens.query,
    maxPassageTokens: identity.maxTokens.passage,
    dimension: identity.dimension,
  };
  const differing = KNOWN.filter((name) => overrides[name] !== undefined && overrides[name] !== own[name]).sort();
  const pooling = overrides.pooling ?? identity.pooling;
  if (!POOLINGS.includes(pooling)) {
    throw new TrawlError('CONFIG_INVALID', `Unknown pooling "${pooling}"; known are ${POOLINGS.join(', ')}.`);
  }
  const dimension = checkDimension(overrides.dimension ?? identity.dimension, identity.dimension);
  return Object.freeze({
    ...identity,
    dimension,
    pooling,
    normalize: overrides.normalize ?? identity.normalize,
    prefixes: Object.freeze({
      query: overrides.queryPrefix ?? identity.prefixes.query,
      passage: overrides.passagePrefix ?? identity.prefixes.passage,
    }),
    maxTokens: Object.freeze({
      query: checkLimit('maxQueryTokens', overrides.maxQueryTokens ?? identity.maxTokens.query, maxPositions),
      passage: checkLimit('maxPassageTokens', overrides.maxPassageTokens ?? identity.maxTokens.passage, maxPositions),
    }),
    ...(dimension === identity.dimension ? {} : { fullDimension: identity.dimension }),
    ...(differing.length === 0 ? {} : { overrides: differing }),
  });
}

function checkLimit(name: string, value: number, maxPositions: number | null): number {
  if (Number.isSafeInteger(value) && value >= 3 && value <= (maxPositions ?? value)) return value;
  throw new TrawlError(
    'CONFIG_INVALID',
    `${name} is ${value}; it must be a whole number from 3 to ${maxPositions === null ? 'what the model takes' : `${maxPositions}, the positions this model has`}.`,
  );
}

function checkDimension(value: number, full: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= full) return value;
  throw new TrawlError(
    'CONFIG_INVALID',
    `dimension is ${value}; it must be a whole number from 1 to ${full}, the values that this model gives. Fewer make sense ` +
      'for models trained for it (Matryoshka).',
  );
}
