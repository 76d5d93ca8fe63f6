import { existsSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { FilterCache } from '../../columns/filter-cache.ts';
import { openRowFilters } from '../../columns/open-row-filters.ts';
import type { ColumnSource, RowFilters } from '../../columns/row-filters.ts';
import { TokenCutter, tokenizerFile } from '../../embedding/cutting/token-cutter.ts';
import type { TextEncoder } from '../../embedding/text-encoder.ts';
import { TrawlError } from '../../errors.ts';
import type { FieldRanking } from '../../lexical-index/bm25.ts';
import type { LexicalFields } from '../../lexical-index/lexical-fields.ts';
import { type LexicalEngineOptions, openLexicalFields } from '../../lexical-index/open-lexical-index.ts';
import type { IndexManifest } from '../../manifest/index-manifest.ts';
import { isServerUrl } from '../../model-server/server-url.ts';
import type { PassageStore } from '../../passages/passage-store.ts';
import { SqlitePassageStore } from '../../passages/sqlite-passage-store.ts';
import type { PublishedIndex } from '../../published/open-stored.ts';
import { shownPlace } from '../../published/shown-place.ts';
import type { RowBitmap } from '../../row-bitmap.ts';
import { openEngine } from '../../vector-index/open-engine.ts';
import type { VectorIndex } from '../../vector-index/vector-index.ts';
import { openViews } from '../../views/open-views.ts';
import type { ViewDefinition } from '../../views/view-definition.ts';
import { checkFieldRanking } from '../lexical/search-words.ts';
import { type ModeParts, missingPart } from '../mode-parts.ts';
import type { Retriever } from '../retriever.ts';
import type { IndexDescription, RetrieverInfo } from '../retriever-info.ts';
import type { RetrieverParts } from '../retriever-parts.ts';
import { SEARCH_MODES, type SearchMode } from '../search-mode.ts';
import { assembleRetriever, type ServingOptions } from './assemble-retriever.ts';
import { describeIndex } from './index-description.ts';
import { type IndexDirectory, openIndexDirectory } from './index-directory.ts';
import { type IndexEncoderOptions, openIndexEncoder, recordedModel } from './open-index-encoder.ts';
import { openUnchanged } from './open-unchanged.ts';
import { isPublishedAddress, openPublishedIndex, parsePublishedAddress } from './published-address.ts';

export interface OpenRetrieverOptions extends IndexEncoderOptions, ServingOptions {
  /**
   * The modes to open, the default mode first. `hybrid` opens dense and bm25 too. Calls in modes that are not open are refused. Default:
   * all modes of the index.
   */
  readonly modes?: readonly SearchMode[];
  /** Weights of the fields and tie breaker of the BM25 searches that set none, for an index with title and text apart. */
  readonly fieldRanking?: FieldRanking | undefined;
  /** The tokenizer of `cut`: a model's name or folder, or a tokenizer.json. Default: that of the index's model. */
  readonly cutTokenizer?: string | undefined;
  /** Embeds the queries instead of the encoder of the index, which is not opened then. The caller answers for its vectors. */
  readonly encoder?: TextEncoder | undefined;
  /** Search threads; default: the available cores. */
  readonly searchThreads?: number;
  /** Where the first pass over the vectors of a folder runs: `cpu`, `cuda` or `cuda:1`. Default: `cpu`. */
  readonly searchDevice?: string | undefined;
  /** Name of the index. Default: the name of its directory. */
  readonly name?: string;
  /** Views that calls can name (`RetrieveCall.views`); an index that cannot have one of them is not opened. */
  readonly views?: readonly ViewDefinition[];
  /** Called at each step, with a description to show to the user. */
  readonly onProgress?: (description: string, stage: 'verifying' | 'loading' | 'mapping') => void;
}

/**
 * Opens an index, in a directory, in Milvus (`milvus://…`) or in OpenSearch (`opensearch://…`), and its query encoder. Prefixes,
 * pooling and token limits come from the manifest, and the encoder must have the weights that the index was built with.
 *
 * @throws TrawlError INDEX_…, STORE_…, MODEL_NOT_FOUND, MODEL_INVALID or MODEL_MISMATCH, or as `openViews`; nothing stays open then.
 */
export async function openRetriever(folder: string, options: OpenRetrieverOptions = {}): Promise<Retriever> {
  const { onProgress = () => undefined } = options;
  onProgress('checking the index', 'verifying');
  const parts = isPublishedAddress(folder) ? await publishedParts(folder, options) : folderParts(folder, options);
  const { manifest, modes, lexical, wordsIn, columns, liveRows, modelFolders } = parts;
  const opened: { close(): Promise<void> }[] = lexical === undefined ? [] : [lexical];
  try {
    let dense: RetrieverParts['dense'];
    if (modes.includes('dense')) {
      if (options.encoder === undefined) onProgress(`loading the encoder ${manifest.model?.name}`, 'loading');
      const encoder = options.encoder ?? (await openIndexEncoder(modelFolders, manifest, options));
      opened.push(encoder);
      onProgress('mapping the vectors', 'mapping');
      const index = await parts.openVectors();
      opened.push(index);
      dense = { encoder, index };
    }
    const filters =
      columns.length === 0 ? undefined : new FilterCache(parts.watchFilters(openRowFilters(columns, manifest.rows)));
    if (filters !== undefined) opened.push(filters);
    onProgress('opening the passages', 'mapping');
    const passages = await parts.openPassages();
    opened.push(passages);
    const cutter = await openCutter(modelFolders, manifest, options);
    if (cutter !== undefined) opened.push(cutter);
    const index = options.name ?? parts.name;
    const { rows, generation } = manifest;
    const views = await openViews(
      options.views ?? [],
      { index, rows, generation, columns, filters, passages, liveRows },
      options.onWarning ?? (() => undefined),
    );
    const info: RetrieverInfo = {
      index,
      rows: manifest.rows,
      deletedRows: manifest.tombstones?.rows ?? 0,
      dimension: manifest.dimension,
      metric: manifest.metric,
      generation: manifest.generation,
      model: manifest.model,
      modes,
      bm25: manifest.bm25 === undefined ? null : { ...manifest.bm25.made, ...(wordsIn && { scoredBy: wordsIn }) },
      columns: columns.map(({ name, type }) => ({ name, type })),
      views: views.infos,
      reranker: options.reranker?.info ?? null,
      ...(parts.description === undefined ? {} : { description: parts.description }),
      memory: {
        residentBytes: dense?.index.residentBytes ?? 0,
        touchedBytes: dense?.index.touchedBytes ?? 0,
        mappedBytes: dense?.index.mappedBytes ?? 0,
        lexicalBytes: lexical?.mappedBytes ?? 0,
      },
      ...(dense?.index.gpu === undefined ? {} : { gpu: dense.index.gpu }),
    };
    return assembleRetriever(
      info,
      { dense, lexical, fieldRanking: options.fieldRanking, filters, views: views.rows, passages, cutter, liveRows },
      options,
    );
  } catch (error) {
    await Promise.allSettled(opened.map((part) => part.close()));
    throw error;
  } finally {
    // What was opened keeps what it needs.
    await parts.close();
  }
}

/** What a retriever is made of, from a folder or from a store. */
interface IndexParts {
  /** The name of an index without one of its own. */
  readonly name: string;
  readonly manifest: IndexManifest;
  /** Undefined for a store, which does not have the files of the shards. */
  readonly description: IndexDescription | undefined;
  readonly modes: readonly SearchMode[];
  /** Open already; undefined if no words are searched. */
  readonly lexical: LexicalFields | undefined;
  /** The store that searches the words; undefined if Trawl does. */
  readonly wordsIn: string | undefined;
  readonly columns: readonly ColumnSource[];
  readonly liveRows: RowBitmap | undefined;
  /** Folders at which the path of the model may start. */
  readonly modelFolders: readonly string[];
  /** Lets the vectors know the filters of rows that they are searched with. */
  watchFilters(filters: RowFilters): RowFilters;
  openVectors(): Promise<VectorIndex>;
  openPassages(): Promise<PassageStore>;
  /** Ends what only the opening needed. */
  close(): Promise<void>;
}

function folderParts(folder: string, options: OpenRetrieverOptions): IndexParts {
  const engine = {
    ...(options.searchThreads === undefined ? {} : { threads: options.searchThreads }),
    ...(options.searchDevice === undefined ? {} : { device: options.searchDevice }),
    ...(options.onWarning === undefined ? {} : { onWarning: options.onWarning }),
    signal: options.signal,
  };
  // Resolves symbolic links once: a link that changes during opening must not mix the files of two indexes.
  const real = realFolder(folder);
  const { directory, modes, lexical } = openUnchanged(real, () => openWords(real, options, engine));
  const { manifest, columns, liveRows } = directory;
  return {
    name: basename(resolve(folder)),
    manifest,
    description: describeIndex(directory),
    modes,
    lexical,
    wordsIn: undefined,
    columns,
    liveRows,
    modelFolders: [folder, directory.folder],
    watchFilters: (filters) => filters,
    openVectors: () => openEngine(directory.source!, engine),
    openPassages: () => SqlitePassageStore.open(directory.passages),
    close: async () => undefined,
  };
}

async function publishedParts(address: string, options: OpenRetrieverOptions): Promise<IndexParts> {
  const { store, name } = parsePublishedAddress(address);
  if ((options.searchDevice ?? 'cpu') !== 'cpu') {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `${shownPlace(address)} is searched by ${store}, not here, so searches cannot run on ${options.searchDevice}. Leave out --search-device.`,
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
  { modes, fieldRanking }: OpenRetrieverOptions,
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
      ? `an index in ${store} has vectors only, no inverted indexes for BM25. Search it with --mode dense, or serve the folder of the index.`
      : `the index was published without its words, so it cannot be searched by BM25. Publish it with them, under another name: trawl optimize INDEX --bm25, then trawl publish INDEX ${shown}-words.`;
  return new TrawlError('NOT_SUPPORTED', `${shown}: ${advice}`);
}

function withoutWords({ bm25: _, ...manifest }: IndexManifest): IndexManifest {
  return manifest;
}

/** The tokenizer that is named, which must exist, or that of the index's model, which is looked for when it is first needed. */
async function openCutter(
  folders: readonly string[],
  manifest: IndexManifest,
  { cutTokenizer, model: named }: OpenRetrieverOptions,
): Promise<TokenCutter | undefined> {
  if (cutTokenizer !== undefined) {
    const file = await tokenizerFile(cutTokenizer);
    return new TokenCutter(async () => file);
  }
  const { model } = manifest;
  if (model === null) return undefined;
  // An endpoint has no tokenizer here.
  const isUrl = named !== undefined && isServerUrl(named);
  if (model.endpoint !== undefined && (named === undefined || isUrl)) return undefined;
  const folder = named === undefined || isUrl ? () => recordedModel(folders, { ...manifest, model }) : () => named;
  return new TokenCutter(async () => tokenizerFile(folder()));
}

/**
 * Checks an index directory and opens its inverted indexes, which `trawl optimize --bm25` in another process may replace and remove.
 */
function openWords(
  folder: string,
  { modes: wanted, fieldRanking }: OpenRetrieverOptions,
  engine: LexicalEngineOptions,
): { directory: IndexDirectory; modes: readonly SearchMode[]; lexical: LexicalFields | undefined } {
  const directory = openIndexDirectory(folder);
  const modes = modesToOpen(directory, wanted);
  if (!modes.includes('bm25')) return { directory, modes, lexical: undefined };
  if (fieldRanking !== undefined) checkFieldRanking(basename(folder), fieldRanking, [...directory.lexical.keys()]);
  return { directory, modes, lexical: openLexicalFields(directory.lexical, engine) };
}

/**
 * The modes to open, the wanted ones first, with those that need no more than they do: an index opened for hybrid search can be
 * searched in each mode.
 *
 * @throws TrawlError NOT_SUPPORTED if the index lacks a wanted mode.
 */
function modesToOpen(
  { folder, source, lexical }: IndexDirectory,
  wanted: readonly SearchMode[] | undefined,
): readonly SearchMode[] {
  const has = { vectors: source !== undefined, words: lexical.size > 0 };
  const missing = wanted?.flatMap((mode) => missingPart(mode, has, basename(folder)) ?? [])[0];
  if (missing !== undefined) throw missing;
  return modesOf(has, wanted);
}

/** The wanted modes of an index that has their parts, and those that need no more. */
function modesOf(has: ModeParts, wanted: readonly SearchMode[] | undefined): readonly SearchMode[] {
  const opened =
    wanted === undefined
      ? has
      : { vectors: wanted.some((mode) => mode !== 'bm25'), words: wanted.some((mode) => mode !== 'dense') };
  const possible = SEARCH_MODES.filter((mode) => missingPart(mode, opened, '') === undefined);
  return [...new Set([...(wanted ?? []), ...possible])];
}

/** Returns a missing folder unchanged; opening it reports the error. */
function realFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : folder;
}
