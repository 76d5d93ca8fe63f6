import { TrawlError } from '../src/errors.ts';
import { DEFAULT_SERVER_CONFIG } from '../src/http/server-config.ts';
import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';
import { ModelReranker } from '../src/rerank/model-reranker.ts';
import { DEFAULT_MAX_RERANK_TOKENS } from '../src/rerank/pair-budget.ts';
import type { Reranker } from '../src/rerank/reranker.ts';
import { DEFAULT_RERANK_DEPTH, type RetrieveCall } from '../src/retrieval/retriever.ts';

/** The options of the commands that can rerank. */
export const RERANK_OPTIONS = {
  rerank: {
    type: 'string',
    value: 'NAME|DIR',
    help: 'Order the passages that a search finds by the scores of this cross-encoder, which reads query and passage together: a name in models/ or the path of a model folder (docs/rerank.md). It runs on --device.',
  },
  'rerank-depth': {
    type: 'integer',
    min: 1,
    max: DEFAULT_SERVER_CONFIG.maxK,
    default: DEFAULT_RERANK_DEPTH,
    help: 'With --rerank: passages per query that the search finds and the reranker scores; at least as many as are wanted. The time grows in proportion.',
  },
  'rerank-max-tokens': {
    type: 'integer',
    min: 1,
    default: DEFAULT_MAX_RERANK_TOKENS,
    help: 'With --rerank: limit of the tokens that the reranker reads for one request, over all pairs of query and passage, estimated with four characters per token. Larger requests are refused.',
  },
  'rerank-threads': {
    type: 'integer',
    min: 1,
    max: 1024,
    help: 'With --rerank: threads of the reranker. Default: the cores available to this process.',
  },
} as const satisfies OptionTable;

export type RerankOptions = OptionValues<typeof RERANK_OPTIONS> & { readonly device: string };

/** @throws TrawlError USAGE for an option that has no effect without --rerank. */
export function checkRerankOptions({ rerank }: RerankOptions, given: ReadonlySet<string>): void {
  const useless = [...given].find((name) => name.startsWith('rerank-'));
  if (rerank === undefined && useless !== undefined) {
    throw new TrawlError('USAGE', `--${useless} has no effect without --rerank MODEL.`);
  }
}

/** Opens the reranker; undefined without --rerank. Errors: those of `openCrossEncoder`. */
export async function openReranker(
  options: RerankOptions,
  { trialAtStart = false } = {},
): Promise<Reranker | undefined> {
  if (options.rerank === undefined) return undefined;
  return ModelReranker.open(options.rerank, {
    device: options.device,
    trialAtStart,
    ...(options['rerank-threads'] === undefined ? {} : { workers: options['rerank-threads'] }),
  });
}

/** The reranking of every search of a command. */
export function rerankCall(options: RerankOptions): Pick<RetrieveCall, 'rerank'> {
  return options.rerank === undefined ? {} : { rerank: { depth: options['rerank-depth'] } };
}
