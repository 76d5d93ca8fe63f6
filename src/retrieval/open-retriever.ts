import { existsSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { SqlitePassageStore } from '../passages/sqlite-passage-store.ts';
import { openEngine } from '../vector-index/open-engine.ts';
import { assembleRetriever, type MeetingOptions } from './assemble-retriever.ts';
import { openIndexDirectory } from './index-directory.ts';
import { type IndexEncoderOptions, openIndexEncoder } from './open-index-encoder.ts';
import type { Retriever, RetrieverInfo } from './retriever.ts';

export interface OpenRetrieverOptions extends IndexEncoderOptions, MeetingOptions {
  /** Search threads; default: as many as cores. */
  readonly searchThreads?: number;
  /** Name of the index; default: that of its directory. */
  readonly name?: string;
  /** Told in a few words what is being done, and at which stage. */
  readonly onProgress?: (doing: string, stage: 'verifying' | 'loading' | 'mapping') => void;
}

/**
 * Opens an index directory with its query encoder. The encoder takes prefixes, pooling and limits from the index's
 * manifest, and its weights have to be those the index was made with.
 *
 * @throws TrawlError INDEX_…, MODEL_NOT_FOUND, MODEL_INVALID or MODEL_MISMATCH; nothing stays open then.
 */
export async function openRetriever(folder: string, options: OpenRetrieverOptions = {}): Promise<Retriever> {
  const { onProgress = () => undefined } = options;
  onProgress('checking the index', 'verifying');
  // By its own path: a link that is turned to another index, or a folder that is renamed, while this one opens would
  // otherwise give files of two.
  const directory = openIndexDirectory(realFolder(folder));
  const { manifest } = directory;
  const opened: { close(): Promise<void> }[] = [];
  try {
    onProgress(`loading the encoder ${manifest.model.name}`, 'loading');
    const encoder = await openIndexEncoder([folder, directory.folder], manifest, options);
    opened.push(encoder);
    onProgress('mapping the vectors', 'mapping');
    const index = await openEngine(directory.source, {
      ...(options.searchThreads === undefined ? {} : { threads: options.searchThreads }),
      ...(options.onWarning === undefined ? {} : { onWarning: options.onWarning }),
    });
    opened.push(index);
    onProgress('opening the passages', 'mapping');
    const passages = await SqlitePassageStore.open(directory.passages);
    opened.push(passages);
    const info: RetrieverInfo = {
      index: options.name ?? basename(resolve(folder)),
      rows: manifest.rows,
      ...(manifest.tombstones === null ? {} : { removedRows: manifest.tombstones.rows }),
      dimension: manifest.dimension,
      metric: manifest.metric,
      generation: manifest.generation,
      model: manifest.model,
      memory: {
        residentBytes: index.residentBytes ?? 0,
        touchedBytes: index.touchedBytes ?? 0,
        mappedBytes: index.mappedBytes ?? 0,
      },
    };
    return assembleRetriever(info, { encoder, index, passages, alive: directory.source.alive }, options);
  } catch (error) {
    await Promise.allSettled(opened.map((part) => part.close()));
    throw error;
  }
}

/** What is not there is said by whoever opens it. */
function realFolder(folder: string): string {
  return existsSync(folder) ? realpathSync(folder) : folder;
}
