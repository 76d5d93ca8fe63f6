import { basename } from 'node:path';
import { SqlitePassageStore } from '../passages/sqlite-passage-store.ts';
import { openEngine } from '../vector-index/open-engine.ts';
import { assembleRetriever, type MeetingOptions } from './assemble-retriever.ts';
import { openIndexDirectory } from './index-directory.ts';
import { type IndexEncoderOptions, openIndexEncoder } from './open-index-encoder.ts';
import type { Retriever, RetrieverInfo } from './retriever.ts';

export interface OpenRetrieverOptions extends IndexEncoderOptions, MeetingOptions {
  /** Search threads; default: as many as cores. */
  readonly searchThreads?: number;
  /** Told in a few words what is being done. */
  readonly onProgress?: (doing: string) => void;
}

/**
 * Opens an index directory with its query encoder. The encoder takes prefixes, pooling and limits from the index's
 * manifest, and its weights have to be those the index was made with.
 *
 * @throws TrawlError INDEX_…, MODEL_NOT_FOUND, MODEL_INVALID or MODEL_MISMATCH; nothing stays open then.
 */
export async function openRetriever(folder: string, options: OpenRetrieverOptions = {}): Promise<Retriever> {
  const { onProgress = () => undefined } = options;
  onProgress('checking the index');
  const directory = openIndexDirectory(folder);
  const { manifest } = directory;
  const opened: { close(): Promise<void> }[] = [];
  try {
    onProgress(`loading the encoder ${manifest.model.name}`);
    const encoder = await openIndexEncoder(folder, manifest, options);
    opened.push(encoder);
    onProgress('opening the vectors');
    const index = await openEngine(directory.source, {
      ...(options.searchThreads === undefined ? {} : { threads: options.searchThreads }),
      ...(options.onWarning === undefined ? {} : { onWarning: options.onWarning }),
    });
    opened.push(index);
    onProgress('opening the passages');
    const passages = await SqlitePassageStore.open(directory.passages);
    opened.push(passages);
    const info: RetrieverInfo = {
      index: basename(directory.folder),
      rows: manifest.rows,
      dimension: manifest.dimension,
      metric: manifest.metric,
      generation: manifest.generation,
      model: manifest.model,
    };
    return assembleRetriever(info, { encoder, index, passages, alive: directory.source.alive }, options);
  } catch (error) {
    await Promise.allSettled(opened.map((part) => part.close()));
    throw error;
  }
}
