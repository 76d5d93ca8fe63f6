import { decodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import type { EndpointRecord, Probe } from '../identity/endpoint-record.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity } from '../identity/model-identity.ts';
import { sha256OfText } from '../model/model-checksum.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';
import type { EndpointFacts, EndpointRoute } from './endpoint-facts.ts';
import { modelPrompts } from './model-prompts.ts';
import type { OpenEndpointOptions } from './open-endpoint-options.ts';
import { LONG_PROBE } from './probe-texts.ts';

/** What a vector's length may differ from 1 by, so that it counts as normalised: bfloat16 has eight bits. */
const UNIT = 0.01;

/** Settings of the vectors that do not depend on the endpoint's answers. */
export interface EndpointSettings {
  readonly prefixes: ModelIdentity['prefixes'];
  readonly requests: EndpointRecord['requests'];
  readonly separator: string | null;
  /** Whether the prefixes of the model are unknown and none were named. */
  readonly arePrefixesUnknown: boolean;
}

/** The prefixes and requests that the index records, else the options', else the model family's. */
export function endpointSettings(
  { takesInputType, model }: Pick<EndpointFacts, 'takesInputType' | 'model'>,
  { overrides = {}, recorded, queryRequest, passageRequest, separator }: OpenEndpointOptions,
): EndpointSettings {
  const requests = {
    query: queryRequest ?? recorded?.endpoint?.requests.query ?? (takesInputType ? { input_type: 'query' } : {}),
    passage:
      passageRequest ?? recorded?.endpoint?.requests.passage ?? (takesInputType ? { input_type: 'passage' } : {}),
  };
  const known = takesInputType || model === null ? null : modelPrompts(model);
  const own = known ?? { query: '', passage: '' };
  return {
    prefixes: recorded?.prefixes ?? {
      query: overrides.queryPrefix ?? own.query,
      passage: overrides.passagePrefix ?? own.passage,
    },
    requests,
    separator: separator ?? recorded?.endpoint?.separator ?? null,
    arePrefixesUnknown:
      recorded === undefined &&
      known === null &&
      !takesInputType &&
      overrides.queryPrefix === undefined &&
      overrides.passagePrefix === undefined,
  };
}

/**
 * The identity of the model behind an endpoint.
 *
 * @throws TrawlError CONFIG_INVALID for settings that the endpoint decides.
 */
export function endpointIdentity(
  facts: EndpointFacts,
  { api }: EndpointRoute,
  settings: EndpointSettings,
  probes: readonly Probe[],
  { overrides = {}, recorded }: OpenEndpointOptions,
): ModelIdentity {
  const vectors = probes.flatMap(({ vector }) => (vector === null ? [] : [decodeVector(vector)]));
  const fullDimension = vectors[0]!.length;
  const isUnit = vectors.every(isUnitVector);
  const limit = facts.maxTokens ?? foundLimit(probes);
  const wanted = recorded === undefined ? overrides : { normalize: recorded.normalize, dimension: recorded.dimension };
  if (recorded === undefined) checkOverrides(overrides, limit);
  const dimension = wanted.dimension ?? fullDimension;
  if (dimension > fullDimension) {
    throw recorded === undefined
      ? new TrawlError(
          'CONFIG_INVALID',
          `--dimension is ${dimension}, but the endpoint's vectors have ${fullDimension} values. Choose at most ${fullDimension}.`,
        )
      : new TrawlError(
          'MODEL_MISMATCH',
          `The vectors of the index have ${dimension} values, and the endpoint's vectors ${fullDimension}, so it runs another model. Name an ` +
            "endpoint that runs the index's model, or the model's folder, with --model.",
        );
  }
  if (wanted.normalize === false && isUnit && api !== 'tei') {
    throw new TrawlError(
      'CONFIG_INVALID',
      'The endpoint returns normalised vectors, so that --normalize no has no effect. Omit it, or use the route /embed of text-embeddings-inference.',
    );
  }
  const template = recorded?.queryTemplate ?? overrides.queryTemplate ?? DEFAULT_QUERY_TEMPLATE;
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
    sha256: sha256OfText(JSON.stringify([name, endpoint])),
    architecture: 'endpoint',
    dimension,
    ...(dimension === fullDimension ? {} : { fullDimension }),
    pooling: 'none',
    normalize: wanted.normalize ?? isUnit,
    similarity: 'inner-product',
    prefixes: settings.prefixes,
    maxTokens: { query: limit, passage: limit },
    precision: null,
    batchInvariant: false,
    ...(template === DEFAULT_QUERY_TEMPLATE ? {} : { queryTemplate: template }),
    endpoint,
  });
}

/** The Euclidean length. */
export function lengthOfVector(vector: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i]! * vector[i]!;
  return Math.sqrt(sum);
}

/** Whether a vector is normalised. */
export function isUnitVector(vector: Float32Array): boolean {
  return Math.abs(lengthOfVector(vector) - 1) <= UNIT;
}

/** The endpoint decides about pooling and truncation. */
function checkOverrides({ pooling, maxQueryTokens, maxPassageTokens }: ModelOverrides, limit: number | null): void {
  const option = Object.entries({ maxQueryTokens, maxPassageTokens }).find(
    ([, tokens]) => tokens !== undefined && tokens !== limit,
  )?.[0];
  const wrong = pooling !== undefined && pooling !== 'none' ? 'pooling' : option;
  if (wrong === undefined) return;
  throw new TrawlError(
    'CONFIG_INVALID',
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
