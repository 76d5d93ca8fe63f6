import { isMilvusAddress, parseMilvusAddress } from '../milvus/milvus-address.ts';
import { openPublishedIndex as openMilvusIndex } from '../milvus/open-published-index.ts';
import { openOpenSearchIndex } from '../opensearch/open-published-index.ts';
import { isOpenSearchAddress, parseOpenSearchAddress } from '../opensearch/opensearch-address.ts';
import type { PublishedIndex } from './open-stored.ts';

/** Whether a text names an index in Milvus or OpenSearch, not a folder. */
export function isPublishedAddress(text: string): boolean {
  return isMilvusAddress(text) || isOpenSearchAddress(text);
}

/** @throws TrawlError CONFIG_INVALID. */
export function parsePublishedAddress(text: string): {
  readonly store: 'Milvus' | 'OpenSearch';
  readonly name: string;
} {
  return isMilvusAddress(text)
    ? { store: 'Milvus', name: parseMilvusAddress(text).collection }
    : { store: 'OpenSearch', name: parseOpenSearchAddress(text).index };
}

/** Opens a published index. @throws TrawlError CONFIG_INVALID, STORE_…, or INDEX_…; nothing stays open then. */
export function openPublishedIndex(text: string): Promise<PublishedIndex> {
  return isMilvusAddress(text) ? openMilvusIndex(text) : openOpenSearchIndex(text);
}
