import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { HttpReranker } from '../../src/encoder/rerank/http-reranker.ts';
import { ModelReranker } from '../../src/encoder/rerank/model-reranker.ts';
import { DEFAULT_MAX_RERANK_TOKENS } from '../../src/encoder/rerank/pair-budget.ts';
import { RERANK_APIS } from '../../src/encoder/rerank/rerank-api.ts';
import type { Reranker } from '../../src/encoder/rerank/reranker.ts';
import { DEFAULT_RERANK_DEPTH, type RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { readApiKey } from './api-key.ts';
import { refuseOptions } from './checks.ts';
import * as option from './option.ts';

/** The options of the commands that can rerank. */
export const RERANK_OPTIONS = {
  rerank: option.text(
    'NAME|DIR|URL',
    'Order the passages that a search finds by the scores of this cross-encoder, which reads query and passage together: a name in models/ or the path of a model folder (docs/rerank.md), which runs on --device. Or the URL of a rerank server: text-embeddings-inference, vLLM, Cohere or Jina.',
  ),
  'rerank-depth': option.integer(
    { min: 1, max: DEFAULT_SERVER_CONFIG.maxK, default: DEFAULT_RERANK_DEPTH },
    'With --rerank: passages per query that the search finds and the reranker scores; at least as many as are wanted. The time grows in proportion.',
  ),
  'rerank-max-tokens': option.integer(
    { min: 1, default: DEFAULT_MAX_RERANK_TOKENS },
    'With --rerank: limit of the tokens that the reranker reads for one request, over all pairs of query and passage, estimated with four characters per token. Larger requests are refused.',
  ),
  'rerank-threads': option.integer(
    { min: 1, max: 1024 },
    'With --rerank: threads of the reranker. Default: the cores available to this process.',
  ),
  'rerank-api': option.choice(
    RERANK_APIS,
    'With a URL as --rerank: the request format of the server, tei (text-embeddings-inference) or cohere (also Jina and vLLM). Default: found out by a trial request.',
  ),
  'rerank-model': option.text(
    'NAME',
    'With a URL as --rerank: the model in the requests, which Cohere, Jina and vLLM require.',
  ),
  'rerank-key-file': option.text(
    'FILE',
    'With a URL as --rerank: file with the API key of the server. Default: the environment variable TRAWL_RERANK_API_KEY.',
  ),
  'rerank-timeout-ms': option.integer(
    { min: 1, max: 999_999_999, default: 60_000 },
    'With a URL as --rerank: time limit of one request to the server in milliseconds. It is repeated up to four times after 408, 429, 502, 503, 504 or no answer.',
  ),
} as const satisfies OptionTable;

const URL_OPTIONS = ['rerank-api', 'rerank-model', 'rerank-key-file', 'rerank-timeout-ms'] as const;
const KEY = { option: '--rerank-key-file', variable: 'TRAWL_RERANK_API_KEY' } as const;

export type RerankOptions = OptionValues<typeof RERANK_OPTIONS> & { readonly device: string };

/** @throws TrawlError USAGE for an option that has no effect without --rerank. */
export function checkRerankOptions({ rerank }: RerankOptions, given: ReadonlySet<string>): void {
  const ofReranker = [...given].filter((name) => name.startsWith('rerank-'));
  if (rerank === undefined) refuseOptions(given, ofReranker, 'without --rerank MODEL');
  else if (!isServerUrl(rerank)) refuseOptions(given, URL_OPTIONS, 'unless --rerank is a URL');
}

/** Opens the reranker; undefined without --rerank. Errors as of `openCrossEncoder` or `HttpReranker.open`. */
export async function openReranker(
  options: RerankOptions,
  { trialAtStart = false } = {},
): Promise<Reranker | undefined> {
  if (options.rerank === undefined) return undefined;
  if (isServerUrl(options.rerank)) {
    return HttpReranker.open(options.rerank, {
      api: options['rerank-api'],
      model: options['rerank-model'],
      apiKey: readApiKey(options['rerank-key-file'], KEY),
      timeoutMs: options['rerank-timeout-ms'],
    });
  }
  return ModelReranker.open(options.rerank, {
    device: options.device,
    trialAtStart,
    workers: options['rerank-threads'],
  });
}

/** The reranking of every search of a command. */
export function rerankCall(options: RerankOptions): Pick<RetrieveCall, 'rerank'> {
  return options.rerank === undefined ? {} : { rerank: { depth: options['rerank-depth'] } };
}
