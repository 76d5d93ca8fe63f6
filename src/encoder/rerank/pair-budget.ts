import { TrawlError } from '../../base/errors.ts';
import type { RerankerInfo, RerankList } from './reranker.ts';

/** Default limit of the tokens of one call: 32,768 pairs of 512 tokens. */
export const DEFAULT_MAX_RERANK_TOKENS = 16 * 1024 * 1024;

/** Tokens of a pair beside its texts: [CLS] and separators. */
const FRAMING_TOKENS = 4;
const CHARACTERS_PER_TOKEN = 4;

/** Refuses a call with too many tokens, estimated from characters, because tokenising them takes long. Throws RERANK_TOO_LARGE. */
export function checkPairBudget(
  lists: readonly RerankList[],
  { maxTokens: limit }: RerankerInfo,
  maxTokens: number,
): void {
  let tokens = 0;
  let pairs = 0;
  for (const { query, passages } of lists) {
    for (const passage of passages) {
      const own = FRAMING_TOKENS + Math.ceil((query.length + passage.length) / CHARACTERS_PER_TOKEN);
      tokens += Math.min(own, limit ?? own);
    }
    pairs += passages.length;
  }
  if (tokens <= maxTokens) return;
  throw new TrawlError(
    'RERANK_TOO_LARGE',
    `The reranker would read ${pairs} pairs of query and passage with about ${tokens} tokens; the limit is ${maxTokens} tokens per ` +
      'request. Send fewer queries per request, rerank fewer passages, or raise --rerank-max-tokens.',
    { details: { pairs, tokens, maxTokens } },
  );
}
