import { TrawlError } from '../../base/errors.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { checkFieldRanking } from '../../search/lexical/search-words.ts';
import { type IndexParts, type IndexPartsOptions, modesOf } from '../../search/opening/index-parts.ts';
import type { PublishedIndex } from './open-stored.ts';
import { openPublishedIndex, parsePublishedAddress } from './published-address.ts';
import { shownPlace } from './shown-place.ts';

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
  const published = await openPublishedIndex(address);
  try {
    const { manifest, columns, liveRows } = published;
    const lexical = publishedWords(published, address, options);
    return {
      name,
      description: undefined,
      manifest: lexical === undefined ? withoutWords(manifest) : manifest,
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

/** Its words, if they are wanted; undefined if it has none and no mode needs them. */
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

/** The error for BM25 in an index that was published without its words. */
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

function withoutWords({ bm25: _, ...manifest }: IndexManifest): IndexManifest {
  return manifest;
}
