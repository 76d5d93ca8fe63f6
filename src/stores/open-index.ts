import { type OpenRetrieverOptions, openParts, openRetriever } from '../search/opening/open-retriever.ts';
import type { OpenRetriever } from '../search/retriever.ts';
import { isPublishedAddress } from './published/published-address.ts';

/**
 * Opens an index in a directory, in Milvus (`milvus://…`) or in OpenSearch (`opensearch://…`). What only stores need is loaded when
 * an address names one.
 *
 * @throws TrawlError as `openRetriever`, and STORE_…; nothing stays open then.
 */
export async function openIndex(place: string, options: OpenRetrieverOptions = {}): Promise<OpenRetriever> {
  if (!isPublishedAddress(place)) return openRetriever(place, options);
  const { publishedParts } = await import('./published/published-parts.ts');
  options.onProgress?.('checking the index', 'verifying');
  return openParts(await publishedParts(place, options), options);
}
