import type { TextEncoder } from '../../encoder/text-encoder.ts';
import { FilterCache } from '../../engine/columns/filter-cache.ts';
import { openRowFilters } from '../../engine/columns/open-row-filters.ts';
import { openViews } from '../../index/views/open-views.ts';
import type { ViewDefinition } from '../../index/views/view-definition.ts';
import { IndexRetriever, type ServingOptions } from '../index-retriever.ts';
import type { RetrieverParts } from '../index-search.ts';
import type { OpenRetriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { folderParts } from './folder-parts.ts';
import type { IndexParts, IndexPartsOptions } from './index-parts.ts';
import { type CutterOptions, openCutter } from './open-cutter.ts';
import { type IndexEncoderOptions, openIndexEncoder } from './open-index-encoder.ts';

export interface OpenRetrieverOptions extends IndexPartsOptions, IndexEncoderOptions, CutterOptions, ServingOptions {
  /** Embeds the queries instead of the encoder of the index, which is not opened then. The caller answers for its vectors. */
  readonly encoder?: TextEncoder;
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
      columns.length === 0
        ? undefined
        : new FilterCache(parts.watchFilters(await openRowFilters(columns, manifest.rows)));
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
      description: parts.description,
      memory: {
        residentBytes: dense?.index.residentBytes ?? 0,
        touchedBytes: dense?.index.touchedBytes ?? 0,
        mappedBytes: dense?.index.mappedBytes ?? 0,
        lexicalBytes: lexical?.mappedBytes ?? 0,
      },
      gpu: dense?.index.gpu === undefined ? undefined : dense.index.gpu,
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
