import { throwIfCancelled } from '../../base/abort.ts';
import { decodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Probe } from '../identity/endpoint-record.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import { invalidConfig } from '../model/json-file.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';
import {
  type ClientLease,
  type EmbedSettings,
  type EndpointClient,
  EndpointClients,
  type Freshness,
  isRefusedContent,
} from './endpoint-client.ts';
import { EndpointEncoder } from './endpoint-encoder.ts';
import { type EndpointFacts, type EndpointRoute, TEI } from './endpoint-facts.ts';
import { endpointIdentity, endpointSettings, isUnitVector, vectorLength } from './endpoint-identity.ts';
import type { EndpointModelOptions } from './endpoint-options.ts';
import { changedEndpoint, EndpointWatch } from './endpoint-watch.ts';
import { LONG_PROBE, probeTexts } from './probes.ts';

export interface OpenEndpointOptions extends EndpointModelOptions {
  readonly onWarning?: (warning: string) => void;
  /** Clients that are shared with other encoders. Default: a client of its own. */
  readonly clients?: EndpointClients;
  /**
   * `performance.now()` from which on answers to other encoders of `clients` count, so that a server that starts embeds the probes once
   * for all its indexes. Default: now, so that none counts.
   */
  readonly answersSince?: number;
  /** Aborting ends the opening with CANCELLED. The open encoder does not use it. */
  readonly signal?: AbortSignal;
}

/**
 * Opens the encoder behind one address or several, separated by commas, which must give the same vectors. Asks for the model and embeds the
 * probe texts. Throws CONFIG_INVALID; ENDPOINT_FAILED; MODEL_MISMATCH if two endpoints differ; CANCELLED. Nothing stays open then.
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
  const unrouted = {
    model: facts.model,
    normalize: (recorded?.normalize ?? overrides.normalize) !== false,
    prefixes: facts.takesInputType ? { query: '', passage: '' } : own.prefixes,
    added: own.requests,
    dimension: null,
  };
  const settings = { ...unrouted, routes: await findRoutes(client, facts, unrouted, options, fresh) };
  const texts = recorded?.endpoint?.probes ?? probeTexts(facts.maxTokens);
  const probe = (server: number, when: Freshness): Promise<Probe[]> => client.probe(server, texts, settings, when);
  const probes = await probe(0, fresh);
  for (const server of shown.keys()) {
    if (server > 0) compareServers([shown[0]!, shown[server]!], [probes, await probe(server, fresh)], onWarning);
  }
  const identity = endpointIdentity(facts, settings.routes[0]!.api, own, probes, options);
  if (own.arePrefixesUnknown) {
    onWarning(
      `The prompts of ${identity.name} are not known: queries and passages get no prefix. If the model has prompts, name them with --query-prefix and --passage-prefix.`,
    );
  }
  warnOfModel(identity, facts, probes, options);
  const { onChange = 'refuse', checkEveryMs: everyMs = 0, batchTexts = 32, batchTokens = 16_384 } = options;
  const expected = recorded?.endpoint?.probes ?? probes;
  return new EndpointEncoder(identity, {
    client,
    release,
    isUnit: probes.every(({ vector }) => vector === null || isUnitVector(decodeVector(vector))),
    settings: { ...settings, dimension: identity.fullDimension ?? identity.dimension },
    batch: { texts: Math.min(batchTexts, facts.maxTexts ?? batchTexts), tokens: batchTokens },
    onWarning,
    watch: new EndpointWatch(expected, { everyMs, onChange, onWarning, shown, probe }),
  });
}

/** The route of each server. @throws TrawlError CONFIG_INVALID if the servers have different APIs; ENDPOINT_FAILED. */
async function findRoutes(
  client: EndpointClient,
  { software }: EndpointFacts,
  settings: EmbedSettings,
  { api: wanted, recorded }: OpenEndpointOptions,
  fresh: Freshness,
): Promise<EndpointRoute[]> {
  // First the index's API, so that long texts are truncated or refused as before. TEI has both; its own truncates if the request says
  // so, the other as the server was started.
  const preferred = recorded?.endpoint?.api ?? (software?.startsWith(TEI) === true ? 'tei' : 'openai');
  const { addresses } = client;
  const routes = await Promise.all(
    addresses.map((_, server) => client.findRoute(server, { wanted, preferred }, settings, fresh)),
  );
  const [first] = routes;
  const other = routes.findIndex(({ api }) => api !== first!.api);
  if (other < 0) return routes;
  throw invalidConfig(
    `The endpoints ${addresses[0]!.shown} and ${addresses[other]!.shown} have different APIs (${first!.api}, ${routes[other]!.api}). Choose one with --endpoint-api.`,
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

function warnOfModel(
  identity: ModelIdentity,
  { maxTokens }: EndpointFacts,
  probes: readonly Probe[],
  { recorded, overrides, onWarning }: OpenEndpointOptions,
): void {
  if (identity.endpoint!.overlong === 'refused') {
    onWarning?.(
      `The endpoint refuses texts that are longer than its model takes${maxTokens === null ? '' : ` (${maxTokens} tokens)`}; they fail. To truncate them, see docs/endpoints.md.`,
    );
  }
  if (recorded === undefined && overrides?.normalize === undefined && !identity.normalize) {
    const { vector } = probes.find((probe) => probe.vector !== null)!;
    const length = vectorLength(decodeVector(vector!)).toPrecision(3);
    onWarning?.(
      `The vectors of ${identity.name} are not normalised (length ${length}) and are compared by inner product as they are, as contriever's model card wants. If the card names the cosine, add --normalize yes.`,
    );
  }
}

/** @throws TrawlError CONFIG_INVALID for prefixes that would be recorded and not sent. */
function checkNoPrefixes({ queryPrefix = '', passagePrefix = '' }: ModelOverrides): void {
  if (queryPrefix === '' && passagePrefix === '') return;
  throw invalidConfig(
    'The endpoint is a Trawl server, which adds the prefixes of its own index. Omit --query-prefix and --passage-prefix.',
  );
}

function refusesLong(probes: readonly Probe[]): boolean {
  return probes.some(({ name, vector }) => name === LONG_PROBE && vector === null);
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
