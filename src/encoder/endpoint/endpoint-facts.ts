import { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import type { EmbeddingApi } from '../identity/endpoint-record.ts';
import { invalidConfig, type JsonObject } from '../model/json-file.ts';
import { parseServerUrl, shownUrl } from '../model-server/server-url.ts';

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

/** Splits the addresses of `--model` at commas. A bare address, or one that ends in `/v1`, gets the API's path. Throws CONFIG_INVALID. */
export function parseEndpoints(text: string): readonly EndpointAddress[] {
  const addresses = text.split(',').map((part) => parseEndpoint(part.trim()));
  const twice = addresses.find(({ shown }, i) => addresses.findIndex((other) => other.shown === shown) !== i);
  if (twice === undefined) return addresses;
  throw invalidConfig(`The endpoint ${twice.shown} is named twice. Name each endpoint once.`);
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
 * @param read reads a JSON page of the server; undefined if the server does not have it.
 * @param wanted the model of `--endpoint-model`.
 * @throws TrawlError CONFIG_INVALID if the server has several models and none is named; ENDPOINT_FAILED for a server of rerankers.
 */
export async function readFacts(
  { at, shown }: EndpointAddress,
  read: (url: string) => Promise<unknown>,
  wanted: string | undefined,
): Promise<EndpointFacts> {
  const page = async (path: string): Promise<JsonObject> => fields(await read(at(path)));
  const list = async (path: string, name: string): Promise<JsonObject[]> => {
    const listed = (await page(path))[name];
    return Array.isArray(listed) ? listed.map(fields) : [];
  };
  const listModels = async (path: string): Promise<JsonObject[]> =>
    (await list(path, 'data')).filter(({ id }) => typeof id === 'string');

  const info = await page('/info');
  // Trawl's server has `/info` too, and adds prompts itself.
  if (typeof info.model_id === 'string' && info.server !== 'trawl') return teiFacts(info, shown, wanted);
  const own = await listModels('/v1/models');
  const models = own.length > 0 ? own : await listModels('/models');
  const owner = text(models[0]?.owned_by);
  const named = namedModel(models, { wanted, owner, shown });
  const model = wanted ?? text(named?.id);
  let revision: unknown;
  if (owner === 'trawl') {
    const served = (await list('/v1/indexes', 'indexes')).map((index) => fields(index.model));
    revision = served.find(({ name }) => name === model)?.sha256;
  } else if (owner === 'library') {
    const tags = await list('/api/tags', 'models');
    revision = tags.find(({ name }) => name === model || name === `${model}:latest`)?.digest;
  } else if (owner === 'sglang') revision = (await page('/model_info')).weight_version;
  return {
    software: owner === 'library' ? 'ollama' : owner,
    model,
    revision: text(revision),
    maxTokens: positive(named?.max_model_len),
    maxTexts: null,
    takesInputType: owner === 'trawl',
  };
}

function teiFacts(info: JsonObject, shown: string, wanted: string | undefined): EndpointFacts {
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
  models: readonly JsonObject[],
  { wanted, owner, shown }: { wanted: string | undefined; owner: string | null; shown: string },
): JsonObject | undefined {
  if (wanted !== undefined) return models.find(({ id }) => id === wanted);
  // Trawl lists each model three times: by its name, and with -query and -passage.
  const [first] = models;
  const bare = models.filter(
    ({ id }) => owner !== 'trawl' || ![`${first?.id}-query`, `${first?.id}-passage`].includes(String(id)),
  );
  if (bare.length <= 1) return first;
  const some = bare.slice(0, 10).map(({ id }) => id);
  throw invalidConfig(
    `The endpoint ${shown} has ${bare.length} models: ${some.join(', ')}${bare.length > 10 ? ', …' : ''}. Name one with --endpoint-model.`,
  );
}

function fields(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 300) : null;
}

function positive(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : null;
}
