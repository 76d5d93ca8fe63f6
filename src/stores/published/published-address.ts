import { isMilvusAddress, parseMilvusAddress } from '../milvus/milvus-address.ts';
import { isOpenSearchAddress, parseOpenSearchAddress } from '../opensearch/opensearch-address.ts';

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

/** A text, such as a path or an option, without the users and passwords of addresses in it, even if they are not percent-encoded. */
export function shownPlace(text: string): string {
  return text.replaceAll(/((?:milvus|opensearch)(?:\+\w+)?:\/\/)\S*@/gi, '$1');
}
