import { hash } from 'node:crypto';
import { decodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import type { EndpointRecord, Probe } from '../identity/endpoint-record.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity } from '../identity/model-identity.ts';
import { invalidConfig } from '../model/json-file.ts';
import { modelPrompts } from '../model/model-families.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';
import type { EndpointFacts } from './endpoint-facts.ts';
import type { EndpointModelOptions } from './endpoint-options.ts';
import { LONG_PROBE } from './probes.ts';

/** What a vector's length may differ from 1 by, so that it counts as normalised: bfloat16 has eight bits. */
const UNIT = 0.01;

/** Settings of the vectors that do not depend on the endpoint's answers. */
type EndpointSettings = ReturnType<typeof endpointSettings>;

/** The prefixes and requests that the index records, else the options', else the model family's. */
export function endpointSettings(
  { takesInputType, model }: EndpointFacts,
  { overrides = {}, recorded, queryRequest, passageRequest, separator }: EndpointModelOptions,
) {
  const own = recorded?.endpoint;
  const inputType = (name: string) => (takesInputType ? { input_type: name } : {});
  const known = takesInputType || model === null ? undefined : modelPrompts(model);
  const { queryPrefix, passagePrefix } = overrides;
  return {
    prefixes: recorded?.prefixes ?? {
      query: queryPrefix ?? known?.query ?? '',
      passage: passagePrefix ?? known?.passage ?? '',
    },
    requests: {
      query: queryRequest ?? own?.requests.query ?? inputType('query'),
      passage: passageRequest ?? own?.requests.passage ?? inputType('passage'),
    },
    separator: separator ?? own?.separator ?? null,
    /** Whether the model's prefixes are unknown, and none were named. */
    arePrefixesUnknown:
      !takesInputType && [recorded, known, queryPrefix, passagePrefix].every((value) => value === undefined),
  };
}

/** The identity of the model behind an endpoint. Throws CONFIG_INVALID for settings that the endpoint decides. */
export function endpointIdentity(
  facts: EndpointFacts,
  api: EndpointRecord['api'],
  settings: EndpointSettings,
  probes: readonly Probe[],
  { overrides = {}, recorded }: EndpointModelOptions,
): ModelIdentity {
  const vectors = probes.flatMap(({ vector }) => (vector === null ? [] : [decodeVector(vector)]));
  const fullDimension = vectors[0]!.length;
  const isUnit = vectors.every(isUnitVector);
  const limit = facts.maxTokens ?? foundLimit(probes);
  if (recorded === undefined) checkOverrides(overrides, limit);
  const { normalize, dimension = fullDimension } = recorded ?? overrides;
  if (dimension > fullDimension) {
    throw recorded === undefined
      ? invalidConfig(
          `--dimension is ${dimension}, but the endpoint's vectors have ${fullDimension} values. Choose at most ${fullDimension}.`,
        )
      : new TrawlError(
          'MODEL_MISMATCH',
          `The vectors of the index have ${dimension} values, and the endpoint's vectors ${fullDimension}, so it runs another model. Name an ` +
            "endpoint that runs the index's model, or the model's folder, with --model.",
        );
  }
  if (normalize === false && isUnit && api !== 'tei') {
    throw invalidConfig(
      'The endpoint returns normalised vectors, so that --normalize no has no effect. Omit it, or use the route /embed of text-embeddings-inference.',
    );
  }
  const queryTemplate = recorded?.queryTemplate ?? overrides.queryTemplate ?? DEFAULT_QUERY_TEMPLATE;
  const endpoint: EndpointRecord = {
    api,
    software: facts.software,
    revision: facts.revision,
    requests: settings.requests,
    separator: settings.separator,
    overlong: overlongTexts(probes, limit),
    probes: [...probes],
  };
  const name = facts.model ?? 'endpoint';
  return Object.freeze({
    name,
    sha256: hash('sha256', JSON.stringify([name, endpoint])),
    architecture: 'endpoint',
    dimension,
    ...(dimension === fullDimension ? {} : { fullDimension }),
    pooling: 'none',
    normalize: normalize ?? isUnit,
    similarity: 'inner-product',
    prefixes: settings.prefixes,
    maxTokens: { query: limit, passage: limit },
    precision: null,
    batchInvariant: false,
    ...(queryTemplate === DEFAULT_QUERY_TEMPLATE ? {} : { queryTemplate }),
    endpoint,
  });
}

export function vectorLength(vector: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i]! * vector[i]!;
  return Math.sqrt(sum);
}

export function isUnitVector(vector: Float32Array): boolean {
  return Math.abs(vectorLength(vector) - 1) <= UNIT;
}

function checkOverrides({ pooling, maxQueryTokens, maxPassageTokens }: ModelOverrides, limit: number | null): void {
  const decided = Object.entries({
    pooling: [pooling, 'none'],
    maxQueryTokens: [maxQueryTokens, limit],
    maxPassageTokens: [maxPassageTokens, limit],
  });
  const wrong = decided.find(([, [given, own]]) => given !== undefined && given !== own)?.[0];
  if (wrong === undefined) return;
  throw invalidConfig(
    `${wrong} cannot be set: the endpoint decides about it. Set it where the endpoint is started, or as a member of its ` +
      'requests (--query-request, --passage-request).',
  );
}

/** The limit that the long probe was truncated to: it has at least one token per word. */
function foundLimit(probes: readonly Probe[]): number | null {
  const { tokens = null, text = '' } = probes.find(({ name }) => name === LONG_PROBE) ?? {};
  return tokens !== null && tokens < text.split(' ').length ? tokens : null;
}

function overlongTexts(probes: readonly Probe[], limit: number | null): EndpointRecord['overlong'] {
  const long = probes.find(({ name }) => name === LONG_PROBE);
  if (long === undefined) return 'unknown';
  if (long.vector === null) return 'refused';
  return limit !== null && limit < long.text.split(' ').length ? 'truncated' : 'unknown';
}
