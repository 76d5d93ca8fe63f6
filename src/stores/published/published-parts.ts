import { TrawlError } from '../../base/errors.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import { checkFieldRanking } from '../../search/lexical/lexical-search.ts';
import { type IndexParts, type IndexPartsOptions, modesOf } from '../../search/opening/open-retriever.ts';
import { openPublishedIndex } from '../milvus/open-published-index.ts';
import { openOpenSearchIndex } from '../opensearch/open-published-index.ts';
import type { PublishedIndex } from './open-stored.ts';
import { parsePublishedAddress, shownPlace } from './published-address.ts';

/**
 * The parts of an index in Milvus or OpenSearch.
 *
 * @throws TrawlError STORE_…; NOT_SUPPORTED for a mode or a device that the store does not have.
 */
export async function publishedParts(address: string, options: IndexPartsOptions): Promise<IndexParts> {
  const { store, name } = parsePublishedAddress(address);
  if ((options.searchDevice ?? 'cpu') !== 'cpu') {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `${shownPlace(address)} is searched by ${store}, not here, so searches cannot run on ${options.searchDevice}. ` +
        'Leave out --search-device.',
    );
  }
  if (store === 'Milvus' && options.modes?.some((mode) => mode !== 'dense') === true) throw withoutWordsIn(address);
  const published = await (store === 'Milvus' ? openPublishedIndex(address) : openOpenSearchIndex(address));
  try {
    const { manifest, columns, liveRows } = published;
    const lexical = publishedWords(published, address, options);
    return {
      name,
      description: undefined,
      manifest: lexical === undefined ? { ...manifest, bm25: undefined } : manifest,
      modes: modesOf({ vectors: true, words: lexical !== undefined }, options.modes),
      lexical,
      wordsIn: lexical && store,
      columns,
      liveRows,
      modelFolders: [shownPlace(address)],
      watchFilters: (filters) => published.pushed?.watching(filters) ?? filters,
      openVectors: async () => published.openVectors(),
      openPassages: async () => published.openPassages(),
      close: () => published.close(),
    };
  } catch (error) {
    await published.close();
    throw error;
  }
}

/** The words of an index, if a mode needs them; undefined if the index has none and no mode was named. */
function publishedWords(
  published: PublishedIndex,
  address: string,
  { modes, fieldRanking }: IndexPartsOptions,
): LexicalFields | undefined {
  if (modes?.every((mode) => mode === 'dense') === true) return undefined;
  const lexical = published.openWords();
  if (lexical === undefined && modes !== undefined) throw withoutWordsIn(address);
  if (lexical !== undefined && fieldRanking !== undefined)
    checkFieldRanking(published.collection, fieldRanking, [...lexical.indexes.keys()]);
  return lexical;
}

function withoutWordsIn(address: string): TrawlError {
  const { store } = parsePublishedAddress(address);
  const shown = shownPlace(address);
  const advice =
    store === 'Milvus'
      ? `an index in ${store} has vectors only, no inverted indexes for BM25. Search it with --mode dense, or serve the folder of the ` +
        'index.'
      : 'the index was published without its words, so it cannot be searched by BM25. Publish it with them, under another name: ' +
        `trawl optimize INDEX --bm25, then trawl publish INDEX ${shown}-words.`;
  return new TrawlError('NOT_SUPPORTED', `${shown}: ${advice}`);
}
