import { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import type { EmbeddingApi } from '../identity/endpoint-record.ts';
import { parseServerUrl, shownUrl } from '../model-server/server-url.ts';

/** An endpoint's address. */
export interface EndpointAddress {
  /** For messages: without query. */
  readonly shown: string;
  /** Where texts may be sent, best first: one address if the path names it. */
  readonly routes: readonly EndpointRoute[];
  /** The address of another path of the server, such as `/v1/models`. */
  readonly at: (path: string) => string;
}

export interface EndpointRoute {
  readonly api: EmbeddingApi;
  readonly url: string;
}

/** What a server says about its model. Null: it does not say it. */
export interface EndpointFacts {
  readonly software: string | null;
  readonly model: string | null;
  readonly revision: string | null;
  /** Limit of a text in tokens, special tokens included. */
  readonly maxTokens: number | null;
  /** Most texts of a request. */
  readonly maxTexts: number | null;
  /** Whether it adds prompts itself, by the member `input_type` of a request. Trawl's own server does. */
  readonly takesInputType: boolean;
}

/** Reads a JSON page of the server; undefined if the server does not have it. */
type ReadPage = (url: string) => Promise<unknown>;

const KEY = { what: "encoder's endpoint", keyOption: '--endpoint-key-file' };
/** In the order in which they are tried, but text-embeddings-inference is asked at `/embed` first. Infinity has `/embeddings` alone. */
const ROUTES = [
  { api: 'openai', path: '/v1/embeddings' },
  { api: 'openai', path: '/embeddings' },
  { api: 'tei', path: '/embed' },
] as const satisfies readonly { api: EmbeddingApi; path: string }[];
/** How the name of text-embeddings-inference begins, as `software`. */
export const TEI = 'text-embeddings-inference';
const SUFFIXES = /\/(v1\/embeddings|v1|embeddings|embed)\/?$/;

/**
 * Splits the addresses of `--model`, which are separated by commas. A bare address, or one that ends in `/v1`, gets the path of the
 * API.
 *
 * @throws TrawlError CONFIG_INVALID.
 */
export function parseEndpoints(text: string): readonly EndpointAddress[] {
  const addresses = text.split(',').map((part) => parseEndpoint(part.trim()));
  const twice = addresses.find(({ shown }, i) => addresses.findIndex((other) => other.shown === shown) !== i);
  if (twice === undefined) return addresses;
  throw new TrawlError('CONFIG_INVALID', `The endpoint ${twice.shown} is named twice. Name each endpoint once.`);
}

function parseEndpoint(text: string): EndpointAddress {
  const url = parseServerUrl(text, KEY);
  const suffix = SUFFIXES.exec(url.pathname)?.[1];
  const root = suffix === undefined ? url.pathname.replace(/\/$/, '') : url.pathname.replace(SUFFIXES, '');
  const at = (path: string): string => {
    const other = new URL(url);
    other.pathname = `${root}${path}`;
    return other.href;
  };
  const paths = ROUTES.filter(
    (route) => suffix === undefined || (suffix === 'v1' ? '/v1/embeddings' : `/${suffix}`) === route.path,
  );
  return { shown: shownUrl(url), routes: paths.map(({ api, path }) => ({ api, url: at(path) })), at };
}

/**
 * Asks the server for its model: TEI's `/info`, `/v1/models` (Infinity: `/models`), Ollama's `/api/tags`, SGLang's `/model_info`,
 * Trawl's `/v1/indexes`.
 *
 * @param wanted the model of `--endpoint-model`.
 * @throws TrawlError CONFIG_INVALID if the server has several models and none is named; ENDPOINT_FAILED for a server of rerankers.
 */
export async function readFacts(
  { at, shown }: Pick<EndpointAddress, 'at' | 'shown'>,
  read: ReadPage,
  wanted: string | undefined,
): Promise<EndpointFacts> {
  const info = fields(await read(at('/info')));
  if (typeof info.model_id === 'string') return teiFacts(info, shown, wanted);
  const own = listedModels(await read(at('/v1/models')));
  const models = own.length > 0 ? own : listedModels(await read(at('/models')));
  const owner = text(models[0]?.owned_by);
  const named = namedModel(models, { wanted, owner, shown });
  const { max_model_len: length } = named ?? {};
  const model = wanted ?? text(named?.id);
  const facts = {
    software: owner === 'library' ? 'ollama' : owner,
    model,
    revision: null,
    maxTokens: positive(length),
    maxTexts: null,
    takesInputType: false,
  };
  if (owner === 'trawl') return { ...facts, takesInputType: true, revision: await trawlRevision(at, read, model) };
  if (owner === 'library') return { ...facts, revision: await ollamaDigest(at, read, model) };
  if (owner === 'sglang') return { ...facts, revision: text(fields(await read(at('/model_info'))).weight_version) };
  return facts;
}

function listedModels(page: unknown): readonly Fields[] {
  const { data } = fields(page);
  return (Array.isArray(data) ? data : []).map(fields).filter(({ id }) => typeof id === 'string');
}

function teiFacts(info: Fields, shown: string, wanted: string | undefined): EndpointFacts {
  const types = fields(info.model_type);
  if (info.model_type !== undefined && typeof info.model_type === 'object' && !('embedding' in types)) {
    throw new TrawlError(
      'ENDPOINT_FAILED',
      `The endpoint ${shown} serves ${String(info.model_id)}, which is not an encoder (${Object.keys(types).join(', ')}).`,
    );
  }
  return {
    software: `${TEI}${typeof info.version === 'string' ? ` ${info.version}` : ''}`,
    model: wanted ?? text(info.model_id),
    revision: text(info.model_sha),
    maxTokens: positive(info.max_input_length),
    maxTexts: positive(info.max_client_batch_size),
    takesInputType: false,
  };
}

function namedModel(
  models: readonly Fields[],
  { wanted, owner, shown }: { wanted: string | undefined; owner: string | null; shown: string },
): Fields | undefined {
  if (wanted !== undefined) return models.find(({ id }) => id === wanted);
  // Trawl lists each model three times: by its name, and with -query and -passage.
  const [first] = models;
  const bare = models.filter(
    ({ id }) => owner !== 'trawl' || ![`${first?.id}-query`, `${first?.id}-passage`].includes(String(id)),
  );
  if (bare.length <= 1) return first;
  const some = bare.slice(0, 10).map(({ id }) => id);
  throw new TrawlError(
    'CONFIG_INVALID',
    `The endpoint ${shown} has ${bare.length} models: ${some.join(', ')}${bare.length > 10 ? ', …' : ''}. Name one with --endpoint-model.`,
  );
}

async function ollamaDigest(at: EndpointAddress['at'], read: ReadPage, model: string | null): Promise<string | null> {
  const page = fields(await read(at('/api/tags')));
  const models = (Array.isArray(page.models) ? page.models : []).map(fields);
  return text(models.find(({ name }) => name === model || name === `${model}:latest`)?.digest);
}

async function trawlRevision(at: EndpointAddress['at'], read: ReadPage, model: string | null): Promise<string | null> {
  const page = fields(await read(at('/v1/indexes')));
  const models = (Array.isArray(page.indexes) ? page.indexes : []).map((index) => fields(fields(index).model));
  return text(models.find(({ name }) => name === model)?.sha256);
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown): Fields {
  return isObject(value) ? value : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 300) : null;
}

function positive(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : null;
}
