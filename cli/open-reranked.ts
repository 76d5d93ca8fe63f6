import { type OpenRetrieverOptions, openRetriever } from '../src/retrieval/open-retriever.ts';
import type { Retriever } from '../src/retrieval/retriever.ts';
import { openReranker, type RerankOptions } from './rerank-options.ts';

/**
 * Opens an index with the reranker of `--rerank`, if any. `close` closes both. Errors: those of `openCrossEncoder` and of
 * `openRetriever`; nothing stays open then.
 */
export async function openReranked(
  folder: string,
  options: RerankOptions,
  retrieving: OpenRetrieverOptions,
): Promise<{ readonly retriever: Retriever; close(): Promise<void> }> {
  const reranker = await openReranker(options);
  try {
    const maxRerankTokens = options['rerank-max-tokens'];
    const retriever = await openRetriever(folder, { ...retrieving, reranker, maxRerankTokens });
    return {
      retriever,
      async close() {
        await retriever.close();
        await reranker?.close();
      },
    };
  } catch (error) {
    await reranker?.close();
    throw error;
  }
}
