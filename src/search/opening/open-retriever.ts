import { existsSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { TokenCutter, tokenizerFile } from '../../encoder/cutting/token-cutter.ts';
import { isServerUrl } from '../../encoder/model-server/server-url.ts';
import type { TextEncoder } from '../../encoder/text-encoder.ts';
import { isWritten, refusingEncoder } from '../../encoder/written-vectors.ts';
import { FilterCache } from '../../engine/columns/filter-cache.ts';
import { openRowFilters } from '../../engine/columns/open-row-filters.ts';
import type { ColumnSource, RowFilters } from '../../engine/columns/row-filters.ts';
import type { FieldRanking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-index.ts';
import { type LexicalEngineOptions, openLexicalFields } from '../../engine/lexical/open-lexical.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { openEngine } from '../../engine/vectors/open-engine.ts';
import type { VectorIndex } from '../../engine/vectors/vector-index.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import { SqlitePassageStore } from '../../index/passages/sqlite-passage-store.ts';
import { openViews } from '../../index/views/open-views.ts';
import type { ViewDefinition } from '../../index/views/view-definition.ts';
import { IndexRetriever, type ServingOptions } from '../index-retriever.ts';
import type { RetrieverParts } from '../index-search.ts';
import { checkFieldRanking } from '../lexical/lexical-search.ts';
import type { OpenRetriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { type ModeParts, missingPart, SEARCH_MODES, type SearchMode } from '../search-mode.ts';
import { describeIndex, type IndexDescription } from './index-description.ts';
import { type IndexDirectory, openIndexDirectory, openUnchanged } from './index-directory.ts';
import { type IndexEncoderOptions, openIndexEncoder, recordedModel } from './open-index-encoder.ts';

export interface OpenRetrieverOptions extends IndexPartsOptions, IndexEncoderOptions, ServingOptions {
  /** Embeds the queries instead of the encoder of the index, which is not opened then. The caller answers for its vectors. */
  readonly encoder?: TextEncoder;
  /** The tokenizer of `cut`: a model's name or folder, or a tokenizer.json. Default: the tokenizer of the index's model. */
  readonly cutTokenizer?: string;
  /** Name of the index. Default: the name of its directory. */
  readonly name?: string;
  /** Views that calls can name (`RetrieveCall.views`); an index that cannot have one of them is not opened. */
  readonly views?: readonly ViewDefinition[];
  /** Called at each step, with a description to show to the user. */
  readonly onProgress?: (description: string, stage: 'verifying' | 'loading' | 'mapping') => void;
}

/**
 * Opens the index in a folder, and its query encoder. Prefixes, pooling and token limits come from the manifest, and the encoder must
 * have the weights that the index was built with.
 *
 * @throws TrawlError INDEX_…, MODEL_NOT_FOUND, MODEL_INVALID or MODEL_MISMATCH, or as `openViews`; nothing stays open then.
 */
export async function openRetriever(folder: string, options: OpenRetrieverOptions = {}): Promise<OpenRetriever> {
  options.onProgress?.('checking the index', 'verifying');
  return openParts(await folderParts(folder, options), options);
}

/** Opens a retriever over the parts of an index, and closes them. @throws as `openRetriever`. */
export async function openParts(parts: IndexParts, options: OpenRetrieverOptions): Promise<OpenRetriever> {
  const { onProgress = () => undefined } = options;
  const { manifest, modes, lexical, wordsIn, columns, liveRows, modelFolders } = parts;
  const opened: { close(): Promise<void> }[] = lexical === undefined ? [] : [lexical];
  try {
    let dense: RetrieverParts['dense'];
    const written = isWritten(manifest.model) ? manifest.model : undefined;
    const model = written === undefined ? manifest.model : null;
    if (modes.includes('dense') || written !== undefined) {
      if (options.encoder === undefined && model !== null) onProgress(`loading the encoder ${model.name}`, 'loading');
      const encoder =
        options.encoder ??
        (written === undefined ? await openIndexEncoder(modelFolders, manifest, options) : refusingEncoder(written));
      opened.push(encoder);
      onProgress('mapping the vectors', 'mapping');
      const index = await parts.openVectors();
      opened.push(index);
      dense = { encoder, index };
    }
    const filters =
      columns.length === 0
        ? undefined
        : new FilterCache(parts.watchFilters(await openRowFilters(columns, manifest.rows)));
    if (filters !== undefined) opened.push(filters);
    onProgress('opening the passages', 'mapping');
    const passages = await parts.openPassages();
    opened.push(passages);
    const cutter = await openCutter(modelFolders, { ...manifest, model }, options);
    if (cutter !== undefined) opened.push(cutter);
    const index = options.name ?? parts.name;
    const { rows, dimension, metric, generation } = manifest;
    const views = await openViews(
      options.views ?? [],
      { index, rows, generation, columns, filters, passages, liveRows },
      options.onWarning ?? (() => undefined),
    );
    const info: RetrieverInfo = {
      index,
      rows,
      deletedRows: manifest.tombstones?.rows ?? 0,
      dimension,
      metric,
      generation,
      model,
      written: written && { field: written.name, normalize: written.normalize },
      modes,
      bm25: manifest.bm25 === undefined ? null : { ...manifest.bm25.made, scoredBy: wordsIn },
      columns: columns.map(({ name, type }) => ({ name, type })),
      views: views.infos,
      reranker: options.reranker?.info ?? null,
      description: parts.description,
      memory: {
        residentBytes: dense?.index.residentBytes ?? 0,
        touchedBytes: dense?.index.touchedBytes ?? 0,
        mappedBytes: dense?.index.mappedBytes ?? 0,
        lexicalBytes: lexical?.mappedBytes ?? 0,
      },
      gpu: dense?.index.gpu,
    };
    return new IndexRetriever(
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

/**
 * Opens the named tokenizer, which must exist, or else the tokenizer of the index's model, which is looked for when it is first needed.
 * Undefined if none is known.
 */
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
 * The parts of an index in a folder.
 *
 * @throws TrawlError INDEX_…; NOT_SUPPORTED if the index lacks a wanted mode.
 */
async function folderParts(folder: string, options: IndexPartsOptions): Promise<IndexParts> {
  const engine = {
    threads: options.searchThreads,
    device: options.searchDevice,
    onWarning: options.onWarning,
    signal: options.signal,
  };
  // Resolves symbolic links once: a link that changes during opening must not mix the files of two indexes. The opening reports a missing folder.
  const real = existsSync(folder) ? realpathSync(folder) : folder;
  const { directory, modes, lexical } = await openUnchanged(real, () => openWords(real, options, engine));
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

/**
 * Checks an index directory and opens its inverted indexes, which `trawl optimize --bm25` in another process may replace and remove.
 */
async function openWords(
  folder: string,
  { modes: wanted, fieldRanking }: IndexPartsOptions,
  engine: LexicalEngineOptions,
): Promise<{ directory: IndexDirectory; modes: readonly SearchMode[]; lexical: LexicalFields | undefined }> {
  const directory = openIndexDirectory(folder);
  const modes = modesToOpen(directory, wanted);
  if (!modes.includes('bm25')) return { directory, modes, lexical: undefined };
  if (fieldRanking !== undefined) checkFieldRanking(basename(folder), fieldRanking, [...directory.lexical.keys()]);
  return { directory, modes, lexical: await openLexicalFields(directory.lexical, engine) };
}

/**
 * The modes to open: the wanted ones first, then the modes that need no further parts. An index opened for hybrid search can be searched in
 * each mode.
 *
 * @throws TrawlError NOT_SUPPORTED if the index lacks a wanted mode.
 */
function modesToOpen(
  { folder, source, lexical, manifest }: IndexDirectory,
  wanted: readonly SearchMode[] | undefined,
): readonly SearchMode[] {
  // Texts cannot be searched in vectors that clients wrote.
  const has = { vectors: source !== undefined && !isWritten(manifest.model), words: lexical.size > 0 };
  const missing = wanted?.flatMap((mode) => missingPart(mode, has, basename(folder)) ?? [])[0];
  if (missing !== undefined) throw missing;
  return modesOf(has, wanted);
}

/** How the parts of an index are opened. */
export interface IndexPartsOptions extends Pick<IndexEncoderOptions, 'onWarning' | 'signal'> {
  /**
   * The modes to open, the default mode first. `hybrid` opens dense and bm25 too. Calls in modes that are not open are refused. Default:
   * all modes of the index.
   */
  readonly modes?: readonly SearchMode[];
  /** Weights of the fields and tie breaker of the BM25 searches that set none, for an index with title and text apart. */
  readonly fieldRanking?: FieldRanking;
  /** Search threads; default: the available cores. */
  readonly searchThreads?: number;
  /** Where the first pass over the vectors of a folder runs: `cpu`, `cuda` or `cuda:1`. Default: `cpu`. */
  readonly searchDevice?: string;
}

/** What a retriever is made of, from a folder or from a store. */
export interface IndexParts {
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

/** The wanted modes of an index that has their parts, and the modes that need no further parts. */
export function modesOf(has: ModeParts, wanted: readonly SearchMode[] | undefined): readonly SearchMode[] {
  const opened =
    wanted === undefined
      ? has
      : { vectors: wanted.some((mode) => mode !== 'bm25'), words: wanted.some((mode) => mode !== 'dense') };
  const possible = SEARCH_MODES.filter((mode) => missingPart(mode, opened, '') === undefined);
  return [...new Set([...(wanted ?? []), ...possible])];
}
