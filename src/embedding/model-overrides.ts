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
}

const KNOWN = ['queryPrefix', 'passagePrefix', 'pooling', 'normalize', 'maxQueryTokens', 'maxPassageTokens'];

/**
 * The identity with the overrides in it, frozen. Throws CONFIG_INVALID for an unknown name or a value that cannot be.
 * `maxPositions`: most tokens that the model takes, null where that is not known.
 */
export function applyOverrides(
  identity: ModelIdentity,
  overrides: ModelOverrides,
  maxPositions: number | null,
): ModelIdentity {
  const misspelt = Object.keys(overrides).find((key) => !KNOWN.includes(key));
  if (misspelt !== undefined) {
    throw new TrawlError('CONFIG_INVALID', `Unknown model override "${misspelt}"; known are ${KNOWN.join(', ')}.`);
  }
  const pooling = overrides.pooling ?? identity.pooling;
  if (!POOLINGS.includes(pooling)) {
    throw new TrawlError('CONFIG_INVALID', `Unknown pooling "${pooling}"; known are ${POOLINGS.join(', ')}.`);
  }
  return Object.freeze({
    ...identity,
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
  });
}

function checkLimit(name: string, value: number, maxPositions: number | null): number {
  if (Number.isSafeInteger(value) && value >= 3 && value <= (maxPositions ?? value)) return value;
  throw new TrawlError(
    'CONFIG_INVALID',
    `${name} is ${value}; it must be a whole number from 3 to ${maxPositions === null ? 'what the model takes' : `${maxPositions}, the positions this model has`}.`,
  );
}
