import {
  type BeforeTruncation,
  DEFAULT_QUERY_TEMPLATE,
  type FolderModelIdentity,
  POOLINGS,
  type Pooling,
  QUERY_TEMPLATES,
  type QueryTemplate,
} from '../identity/model-identity.ts';
import { invalidConfig } from './json-file.ts';

/** Settings that replace the settings in a model's description. They change the vectors, so the identity records them. */
export interface ModelOverrides {
  readonly queryPrefix?: string;
  readonly passagePrefix?: string;
  readonly queryTemplate?: QueryTemplate;
  readonly pooling?: Pooling;
  readonly normalize?: boolean;
  /** Token limit, prefix and special tokens included; from 3 to the model's positions. */
  readonly maxQueryTokens?: number;
  readonly maxPassageTokens?: number;
  /** Number of values to keep of each vector, before normalisation; from 1 to the model's dimension. */
  readonly dimension?: number;
  /** What comes before the truncation to `dimension`; null: nothing. Default: as the model's description says. */
  readonly beforeTruncation?: BeforeTruncation | null;
}

function ownSettings(identity: FolderModelIdentity): Required<ModelOverrides> {
  return {
    queryPrefix: identity.prefixes.query,
    passagePrefix: identity.prefixes.passage,
    queryTemplate: identity.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    pooling: identity.pooling,
    normalize: identity.normalize,
    maxQueryTokens: identity.maxTokens.query,
    maxPassageTokens: identity.maxTokens.passage,
    dimension: identity.dimension,
    beforeTruncation: identity.beforeTruncation ?? null,
  };
}

/**
 * Returns the identity with the overrides applied, frozen. Its `overrides` lists the settings that differ from the model's own.
 * `maxPositions`: the model's maximum number of tokens; undefined if unknown. Throws CONFIG_INVALID.
 */
export function applyOverrides(
  identity: FolderModelIdentity,
  overrides: ModelOverrides,
  maxPositions: number | undefined,
): FolderModelIdentity {
  const own = ownSettings(identity);
  const names = Object.keys(own) as (keyof ModelOverrides)[];
  const misspelt = Object.keys(overrides).find((key) => !Object.hasOwn(own, key));
  if (misspelt !== undefined) {
    throw invalidConfig(`Unknown model override "${misspelt}". Expected one of ${names.join(', ')}.`);
  }
  // Null counts as not given, but for `beforeTruncation`.
  const isGiven = ([name, value]: [string, unknown]) =>
    value != null || (name === 'beforeTruncation' && value === null);
  const given = Object.fromEntries(Object.entries(overrides).filter(isGiven)) as ModelOverrides;
  const chosen = { ...own, ...given };
  // No option sets what comes before a truncation; the identity records it beside the dimension.
  const differing = names.filter((name) => name !== 'beforeTruncation' && chosen[name] !== own[name]).sort();
  const { pooling, normalize, queryTemplate, dimension } = chosen;
  checkOneOf('pooling', pooling, POOLINGS);
  checkOneOf('query template', queryTemplate, QUERY_TEMPLATES);
  checkDimension(dimension, own.dimension);
  checkLimit('maxQueryTokens', chosen.maxQueryTokens, maxPositions);
  checkLimit('maxPassageTokens', chosen.maxPassageTokens, maxPositions);
  const isTruncated = dimension !== own.dimension;
  const { queryTemplate: _, beforeTruncation: __, ...rest } = identity;
  return Object.freeze({
    ...rest,
    ...(queryTemplate === DEFAULT_QUERY_TEMPLATE ? {} : { queryTemplate }),
    dimension,
    pooling,
    normalize,
    prefixes: Object.freeze({ query: chosen.queryPrefix, passage: chosen.passagePrefix }),
    maxTokens: Object.freeze({ query: chosen.maxQueryTokens, passage: chosen.maxPassageTokens }),
    ...(isTruncated ? { fullDimension: own.dimension, beforeTruncation: chosen.beforeTruncation ?? undefined } : {}),
    ...(differing.length === 0 ? {} : { overrides: differing }),
  });
}

function checkOneOf<T extends string>(what: string, value: T, known: readonly T[]): void {
  if (!known.includes(value)) throw invalidConfig(`Unknown ${what} "${value}". Expected one of ${known.join(', ')}.`);
}

function checkLimit(name: string, value: number, maxPositions: number | undefined): void {
  if (Number.isSafeInteger(value) && value >= 3 && value <= (maxPositions ?? value)) return;
  const limit =
    maxPositions === undefined ? "the model's limit" : `${maxPositions}, the number of positions of this model`;
  throw invalidConfig(`${name} is ${value}; it must be a whole number from 3 to ${limit}.`);
}

function checkDimension(value: number, full: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= full) return;
  throw invalidConfig(
    `dimension is ${value}; it must be a whole number from 1 to ${full}, the dimension of this model. A smaller dimension ` +
      'is useful only for models that were trained for it (Matryoshka).',
  );
}
