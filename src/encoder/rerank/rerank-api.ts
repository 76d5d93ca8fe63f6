import { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import type { RerankList } from './reranker.ts';

/** The request formats of rerank servers: text-embeddings-inference has one; Cohere, Jina and vLLM share the other. */
export const RERANK_APIS = ['tei', 'cohere'] as const;
export type RerankApi = (typeof RERANK_APIS)[number];

/** Most passages of one request to a server that states no limit: the default of text-embeddings-inference, and Cohere's advice. */
export const MOST_PASSAGES: Readonly<Record<RerankApi, number>> = { tei: 32, cohere: 1_000 };

/** The body of a request. Its reply is to have every passage, without its text. */
export function rerankBody(
  api: RerankApi,
  { query, passages }: RerankList,
  { model, raw }: { readonly model: string | undefined; readonly raw: boolean },
): object {
  if (api === 'tei') return { query, texts: passages, raw_scores: raw, truncate: true };
  if (raw) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      "This reranker is a server with Cohere's format, which has no raw scores. Ask for scores after the activation.",
    );
  }
  return { model, query, documents: passages, top_n: passages.length, return_documents: false };
}

/** The scores in a reply, in the order of the passages. Throws RERANK_FAILED without one finite score for each. */
export function rerankScores(api: RerankApi, reply: unknown, passages: number): Float32Array {
  const results = api === 'tei' ? reply : (reply as { results?: unknown } | null)?.results;
  if (!Array.isArray(results)) {
    throw unusable(api === 'tei' ? `it is ${kindOf(reply)}, not a list` : 'it has no list `results`');
  }
  if (results.length !== passages) throw unusable(`it has ${results.length} scores for ${passages} passages`);
  const scores = new Float32Array(passages).fill(Number.NaN);
  const name = api === 'tei' ? 'score' : 'relevance_score';
  for (const result of results as readonly unknown[]) {
    if (!isObject(result)) throw unusable(`it has ${kindOf(result)} in place of an object with index and ${name}`);
    const { index, [name]: score } = result;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= passages) {
      const found = typeof index === 'number' ? String(index) : kindOf(index);
      throw unusable(`it has the index ${found}; expected 0 to ${passages - 1}`);
    }
    if (typeof score !== 'number' || !Number.isFinite(Math.fround(score))) {
      throw unusable(`the ${name} of passage ${String(index)} is not a finite number`);
    }
    if (!Number.isNaN(scores[index as number])) throw unusable(`it has the index ${String(index)} twice`);
    scores[index as number] = score;
  }
  return scores;
}

/** The kind of a value, which may be a text that no message may have. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'a list';
  return isObject(value) ? 'an object' : `a ${typeof value}`;
}

function unusable(reason: string): TrawlError {
  return new TrawlError(
    'RERANK_FAILED',
    `The reply of the rerank server is unusable: ${reason}. Check its address and --rerank-api.`,
    { details: { fault: reason } },
  );
}
