import { usageError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import type { EndpointOptions } from '../../src/encoder/endpoint/endpoint-options.ts';
import { EMBEDDING_APIS } from '../../src/encoder/identity/endpoint-record.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { readApiKey } from '../options/api-key.ts';
import * as option from '../options/option.ts';

const WITH_URL = 'With a URL as --model:';

/** Options of the commands whose encoder may be behind HTTP. */
export const ENDPOINT_OPTIONS = {
  'endpoint-api': option.choice(
    EMBEDDING_APIS,
    `${WITH_URL} the request format, openai (/v1/embeddings) or tei (/embed of text-embeddings-inference). Default: the index's, else found out by a trial request: tei first for text-embeddings-inference, else openai.`,
  ),
  'endpoint-model': option.text(
    'NAME',
    `${WITH_URL} the model in the requests. Default: the endpoint's model, if it has only one.`,
  ),
  'endpoint-key-file': option.text(
    'FILE',
    `${WITH_URL} file with the API key of the endpoint. Default: the environment variable TRAWL_ENDPOINT_API_KEY. The key is in no manifest and no log.`,
  ),
  'endpoint-timeout-ms': option.integer(
    { min: 1, max: 300_000, default: 60_000 },
    `${WITH_URL} time limit of one request in milliseconds. It is repeated after 408, 429, 502, 503, 504 or no answer.`,
  ),
  'endpoint-requests': option.integer(
    { min: 1, max: 1024, default: 8 },
    `${WITH_URL} requests at the same time to each endpoint. More keep a GPU busier; too many are refused with 429.`,
  ),
  'endpoint-batch': option.integer(
    { min: 1, max: 2048, default: 32 },
    `${WITH_URL} most texts of a request, and never more than the endpoint says that it takes, nor than 256 in a build.`,
  ),
  'endpoint-batch-tokens': option.integer(
    { min: 1, default: 16_384 },
    `${WITH_URL} most tokens of a request, estimated with four characters per token. A longer text goes alone.`,
  ),
  'endpoint-check-s': option.integer(
    { min: 0, max: 86_400, default: 300 },
    `${WITH_URL} seconds after which a used endpoint embeds the probe texts again, to find out whether its model has changed. 0: only when an index is opened.`,
  ),
  'endpoint-changed': option.choice(
    { choices: ['refuse', 'report'], default: 'refuse' },
    `${WITH_URL} what to do if the endpoint gives other vectors than the index has: refuse it, or only report the measured similarities.`,
  ),
  'query-request': option.text(
    'JSON',
    `${WITH_URL} members to add to the requests of queries, such as {"prompt_name": "query"}. The index records them: no key here. Default: those that the index records.`,
  ),
  'passage-request': option.text(
    'JSON',
    `${WITH_URL} members to add to the requests of passages, such as {"truncate_prompt_tokens": 512}. The index records them: no key here. Default: those that the index records.`,
  ),
  'query-separator': option.text(
    'TEXT',
    `${WITH_URL} what stands between question, history and query, with spaces around it, such as [SEP]. Default: the index's, else one space.`,
  ),
} as const satisfies OptionTable;

const KEY = { option: '--endpoint-key-file', variable: 'TRAWL_ENDPOINT_API_KEY' } as const;
/** Options of a model that this process runs. */
const FOLDER_OPTIONS = [
  'precision',
  'share-weights',
  'workers',
  'encoder-threads',
  'pooling',
  'max-query-tokens',
  'max-passage-tokens',
];

/** @throws TrawlError USAGE for an option that has no effect with this model. */
export function checkEndpointOptions(model: string | undefined, given: ReadonlySet<string>): void {
  const isUrl = model !== undefined && isServerUrl(model);
  const useless = isUrl
    ? FOLDER_OPTIONS.find((name) => given.has(name))
    : Object.keys(ENDPOINT_OPTIONS).find((name) => given.has(name));
  if (useless === undefined) return;
  throw usageError(
    isUrl
      ? `--${useless} has no effect: --model is a URL, and the endpoint decides about it.`
      : `--${useless} has no effect unless --model is a URL.`,
  );
}

/**
 * @param forBuild whether hours of work wait for an endpoint that is overloaded or restarts; a query must not.
 * @throws TrawlError CONFIG_INVALID or USAGE.
 */
export function endpointOptions(
  options: OptionValues<typeof ENDPOINT_OPTIONS>,
  { forBuild = false } = {},
): EndpointOptions {
  return {
    api: options['endpoint-api'],
    model: options['endpoint-model'],
    apiKey: readApiKey(options['endpoint-key-file'], KEY),
    timeoutMs: options['endpoint-timeout-ms'],
    requests: options['endpoint-requests'],
    batchTexts: options['endpoint-batch'],
    batchTokens: options['endpoint-batch-tokens'],
    checkEveryMs: options['endpoint-check-s'] * 1000,
    onChange: options['endpoint-changed'],
    queryRequest: members('query-request', options['query-request']),
    passageRequest: members('passage-request', options['passage-request']),
    separator: options['query-separator'],
    ...(forBuild ? { attempts: 12, maxWaitMs: 120_000 } : {}),
  };
}

function members(option: string, text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (isObject(value)) return value;
  throw usageError(`--${option} is not a JSON object; expected members such as {"prompt_name": "query"}.`);
}
