import { TrawlError } from '../../base/errors.ts';
import {
  type BeforeTruncation,
  DEFAULT_QUERY_TEMPLATE,
  type FolderModelIdentity,
  POOLINGS,
  type Pooling,
  QUERY_TEMPLATES,
  type QueryTemplate,
} from '../identity/model-identity.ts';

/** Settings that replace the settings in a model's description. They change the vectors, so the identity records them. */
export interface ModelOverrides {
  readonly queryPrefix?: string;
  readonly passagePrefix?: string;
  /** Which of question, history and query are embedded. */
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

const KNOWN = [
  'queryPrefix',
  'passagePrefix',
  'queryTemplate',
  'pooling',
  'normalize',
  'maxQueryTokens',
  'maxPassageTokens',
  'dimension',
  'beforeTruncation',
] as const;

/**
 * Returns the identity with the overrides applied, frozen. Its `overrides` lists the settings that differ from the model's own.
 * `maxPositions`: the model's maximum number of tokens; null if unknown. Throws CONFIG_INVALID.
 */
export function applyOverrides(
  identity: FolderModelIdentity,
  overrides: ModelOverrides,
  maxPositions: number | null,
): FolderModelIdentity {
  const misspelt = Object.keys(overrides).find((key) => !(KNOWN as readonly string[]).includes(key));
  if (misspelt !== undefined) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `Unknown model override "${misspelt}". Expected one of ${KNOWN.join(', ')}.`,
    );
  }
  const own: Required<{ [name in (typeof KNOWN)[number]]: unknown }> = {
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
  // No option sets what comes before a truncation; the identity records it beside the dimension.
  const differing = KNOWN.filter(
    (name) => name !== 'beforeTruncation' && overrides[name] !== undefined && overrides[name] !== own[name],
  ).sort();
  const pooling = overrides.pooling ?? identity.pooling;
  if (!POOLINGS.includes(pooling)) {
    throw new TrawlError('CONFIG_INVALID', `Unknown pooling "${pooling}". Expected one of ${POOLINGS.join(', ')}.`);
  }
  const { queryTemplate: ownTemplate, beforeTruncation: ownStep, ...rest } = identity;
  const step = overrides.beforeTruncation === undefined ? ownStep : (overrides.beforeTruncation ?? undefined);
  const template = checkTemplate(overrides.queryTemplate ?? ownTemplate ?? DEFAULT_QUERY_TEMPLATE);
  const dimension = checkDimension(overrides.dimension ?? identity.dimension, identity.dimension);
  return Object.freeze({
    ...rest,
    ...(template === DEFAULT_QUERY_TEMPLATE ? {} : { queryTemplate: template }),
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
    ...(dimension === identity.dimension ? {} : { fullDimension: identity.dimension, beforeTruncation: step }),
    ...(differing.length === 0 ? {} : { overrides: differing }),
  });
}

function checkTemplate(template: QueryTemplate): QueryTemplate {
  if (QUERY_TEMPLATES.includes(template)) return template;
  throw new TrawlError(
    'CONFIG_INVALID',
    `Unknown query template "${template}". Expected one of ${QUERY_TEMPLATES.join(', ')}.`,
  );
}

function checkLimit(name: string, value: number, maxPositions: number | null): number {
  if (Number.isSafeInteger(value) && value >= 3 && value <= (maxPositions ?? value)) return value;
  throw new TrawlError(
    'CONFIG_INVALID',
    `${name} is ${value}; it must be a whole number from 3 to ${maxPositions === null ? "the model's limit" : `${maxPositions}, the number of positions of this model`}.`,
  );
}

function checkDimension(value: number, full: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= full) return value;
  throw new TrawlError(
    'CONFIG_INVALID',
    `dimension is ${value}; it must be a whole number from 1 to ${full}, the dimension of this model. A smaller dimension ` +
      'is useful only for models that were trained for it (Matryoshka).',
  );
}
