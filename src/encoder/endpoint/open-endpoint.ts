import { throwIfCancelled } from '../../base/abort.ts';
import { decodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import type { EmbeddingApi, Probe } from '../identity/endpoint-record.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';
import { type Freshness, isRefusedContent, type SentSettings } from './endpoint-client.ts';
import { type ClientLease, EndpointClients } from './endpoint-clients.ts';
import { EndpointEncoder } from './endpoint-encoder.ts';
import { type EndpointFacts, TEI } from './endpoint-facts.ts';
import {
  type EndpointSettings,
  endpointIdentity,
  endpointSettings,
  isUnitVector,
  lengthOfVector,
} from './endpoint-identity.ts';
import { changedEndpoint, EndpointWatch } from './endpoint-watch.ts';
import type { OpenEndpointOptions } from './open-endpoint-options.ts';
import { probeTexts } from './probe-texts.ts';

/** Texts of a request to an endpoint that states no limit: the default of TEI. */
const DEFAULT_BATCH_TEXTS = 32;
const DEFAULT_BATCH_TOKENS = 16_384;

/**
 * Opens the encoder behind one address or several, separated by commas, which must give the same vectors. Asks for the model and
 * embeds the probe texts.
 *
 * @throws TrawlError CONFIG_INVALID; ENDPOINT_FAILED; MODEL_MISMATCH if two endpoints differ; CANCELLED. Nothing stays open then.
 */
export async function openEndpoint(text: string, options: OpenEndpointOptions = {}): Promise<EndpointEncoder> {
  const { clients = new EndpointClients(), answersSince = performance.now(), signal } = options;
  throwIfCancelled(signal);
  const lease = clients.lease(text, options);
  try {
    return await open(lease, options, { since: answersSince, signal });
  } catch (error) {
    lease.release();
    if (!isRefusedContent(error)) throw error;
    // Not a fault of a query's text: the endpoint refuses the probes.
    throw new TrawlError('ENDPOINT_FAILED', (error as Error).message, { cause: error });
  }
}

async function open(
  { client, release }: ClientLease,
  options: OpenEndpointOptions,
  fresh: Freshness,
): Promise<EndpointEncoder> {
  const { recorded, overrides = {}, onWarning = () => undefined } = options;
  const shown = client.addresses.map((address) => address.shown);
  const facts = common(await Promise.all(shown.map((_, server) => client.facts(server, options.model, fresh))));
  if (facts.takesInputType && recorded === undefined) checkNoPrefixes(overrides);
  const own = endpointSettings(facts, options);
  const settings = await sentSettings(client, { facts, own }, options, fresh);
  const texts = recorded?.endpoint?.probes ?? probeTexts(facts.maxTokens);
  const probe = (server: number, when: Freshness): Promise<Probe[]> => client.probe(server, texts, settings, when);
  const probes = await probe(0, fresh);
  for (const server of shown.keys()) {
    if (server > 0) compareServers([shown[0]!, shown[server]!], [probes, await probe(server, fresh)], onWarning);
  }
  const identity = endpointIdentity(facts, settings.routes[0]!, own, probes, options);
  for (const warning of warningsOf(identity, { facts, own, probes }, options)) onWarning(warning);
  const { onChange = 'refuse', checkEveryMs = 0 } = options;
  const expected = recorded?.endpoint?.probes ?? probes;
  return new EndpointEncoder(identity, {
    client,
    release,
    isUnit: probes.every(({ vector }) => vector === null || isUnitVector(decodeVector(vector))),
    settings: { ...settings, dimension: identity.fullDimension ?? identity.dimension },
    size: {
      texts: Math.min(options.batchTexts ?? DEFAULT_BATCH_TEXTS, facts.maxTexts ?? Number.POSITIVE_INFINITY),
      tokens: options.batchTokens ?? DEFAULT_BATCH_TOKENS,
    },
    watch: new EndpointWatch(expected, { everyMs: checkEveryMs, onChange, onWarning, shown, probe }),
  });
}

interface Found {
  readonly facts: EndpointFacts;
  readonly own: EndpointSettings;
}

/** What requests are sent with. @throws TrawlError CONFIG_INVALID if the servers have different APIs; ENDPOINT_FAILED. */
async function sentSettings(
  client: ClientLease['client'],
  { facts, own }: Found,
  options: OpenEndpointOptions,
  fresh: Freshness,
): Promise<SentSettings> {
  const { recorded, overrides = {} } = options;
  const unrouted = {
    model: facts.model,
    normalize: (recorded?.normalize ?? overrides.normalize) !== false,
    prefixes: facts.takesInputType ? { query: '', passage: '' } : own.prefixes,
    added: own.requests,
    dimension: null,
  };
  const apis = { wanted: options.api, preferred: preferredApi(facts, options) };
  const shown = client.addresses.map((address) => address.shown);
  const routes = await Promise.all(shown.map((_, server) => client.findRoute(server, apis, unrouted, fresh)));
  const other = routes.findIndex(({ api }) => api !== routes[0]!.api);
  if (other < 0) return { ...unrouted, routes };
  throw new TrawlError(
    'CONFIG_INVALID',
    `The endpoints ${shown[0]} and ${shown[other]} have different APIs (${routes[0]!.api}, ${routes[other]!.api}). Choose one with --endpoint-api.`,
  );
}

/** Warns if only one of two servers truncates long texts. @throws TrawlError MODEL_MISMATCH if their vectors differ. */
function compareServers(
  [first, other]: readonly [string, string],
  [probes, others]: readonly [readonly Probe[], readonly Probe[]],
  onWarning: (message: string) => void,
): void {
  const error = changedEndpoint(other, probes, others);
  if (error !== undefined) {
    throw new TrawlError('MODEL_MISMATCH', `The endpoints ${first} and ${other} differ. ${error.message}`, {
      cause: error,
    });
  }
  if (refusesLong(others) === refusesLong(probes)) return;
  onWarning(
    `Of the endpoints ${first} and ${other}, one truncates texts that are longer than its model takes, the other refuses them. Whether a long text fails depends on the endpoint that gets it. Start both with the same settings.`,
  );
}

/** What the user should know of the model and its servers. */
function* warningsOf(
  identity: ModelIdentity,
  { facts, own, probes }: Found & { readonly probes: readonly Probe[] },
  { recorded, overrides = {} }: OpenEndpointOptions,
): Generator<string> {
  if (own.arePrefixesUnknown) {
    yield `The prompts of ${identity.name} are not known: queries and passages get no prefix. If the model has prompts, name them with --query-prefix and --passage-prefix.`;
  }
  if (identity.endpoint!.overlong === 'refused') {
    yield `The endpoint refuses texts that are longer than its model takes${facts.maxTokens === null ? '' : ` (${facts.maxTokens} tokens)`}; they fail. To truncate them, see docs/endpoints.md.`;
  }
  if (recorded === undefined && overrides.normalize === undefined && !identity.normalize) {
    const [raw] = probes.flatMap(({ vector }) => (vector === null ? [] : [decodeVector(vector)]));
    yield `The vectors of ${identity.name} are not normalised (length ${lengthOfVector(raw!).toPrecision(3)}) and are compared by inner product as they are, as contriever's model card wants. If the card names the cosine, add --normalize yes.`;
  }
}

/** @throws TrawlError CONFIG_INVALID for prefixes that would be recorded and not sent. */
function checkNoPrefixes({ queryPrefix = '', passagePrefix = '' }: ModelOverrides): void {
  if (queryPrefix === '' && passagePrefix === '') return;
  throw new TrawlError(
    'CONFIG_INVALID',
    'The endpoint is a Trawl server, which adds the prefixes of its own index. Omit --query-prefix and --passage-prefix.',
  );
}

function refusesLong(probes: readonly Probe[]): boolean {
  return probes.some(({ vector }) => vector === null);
}

/**
 * The API that is tried first: the index's, so that long texts are truncated or refused as before. TEI has both; its own
 * truncates if the request says so, the other as the server was started.
 */
function preferredApi({ software }: EndpointFacts, { recorded }: OpenEndpointOptions): EmbeddingApi {
  return recorded?.endpoint?.api ?? (software?.startsWith(TEI) === true ? 'tei' : 'openai');
}

/** The facts of the first server, with the smallest limits of all. */
function common(all: readonly EndpointFacts[]): EndpointFacts {
  const smallest = (values: readonly (number | null)[]): number | null => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : Math.min(...known);
  };
  return {
    ...all[0]!,
    maxTokens: smallest(all.map(({ maxTokens }) => maxTokens)),
    maxTexts: smallest(all.map(({ maxTexts }) => maxTexts)),
  };
}
