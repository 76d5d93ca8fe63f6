import { existsSync, realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { openEncoder } from '../embedding/open-encoder.ts';
import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import type { ModelIdentity, Precision } from '../manifest/model-identity.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import { SqlitePassageStore } from '../passages/sqlite-passage-store.ts';
import { openEngine } from '../vector-index/open-engine.ts';
import type { RowBitmap } from '../vector-index/row-bitmap.ts';
import type { VectorIndex } from '../vector-index/vector-index.ts';
import type { AnswerCache } from './answer-cache.ts';
import { BoundedRetriever, DEFAULT_MAX_WAITING_BYTES } from './bounded-retriever.ts';
import { checkSameModel } from './compare-model.ts';
import { openIndexDirectory } from './index-directory.ts';
import { QueuedIndex } from './queued-index.ts';
import type { Retriever, RetrieverInfo } from './retriever.ts';
import { SearchRetriever } from './search-retriever.ts';
import { SharingRetriever } from './sharing-retriever.ts';

/** How the calls of a retriever meet. */
export interface MeetingOptions {
  /** Finished answers, kept for queries that come again; may be shared by several retrievers. Absent: none are kept. */
  readonly answerCache?: AnswerCache | undefined;
  /** Whether equal queries that are under way at the same time are computed once; default: yes. */
  readonly singleFlight?: boolean;
  /**
   * Bytes of the queries that wait and of their expected answers, beyond which calls are refused with OVERLOADED;
   * default: 512 MiB. Too little refuses bursts that would be answered in seconds, too much lets them fill the memory.
   */
  readonly maxWaitingBytes?: number;
}

export interface OpenRetrieverOptions extends MeetingOptions {
  /** Folder or name of the query encoder; default: where the manifest says that it lay, else the name it has there. */
  readonly model?: string;
  /** Default: the manifest's, or the other float precision of the same checkpoint where there is no such graph. */
  readonly precision?: Precision;
  /** `cpu` (default) or CUDA devices (src/embedding/device.ts). */
  readonly device?: string;
  /** See `RunOptions` of the encoder. */
  readonly shareWeights?: boolean | undefined;
  /** Encoder threads; default: as many as cores. */
  readonly encoderThreads?: number;
  /** Search threads; default: as many as cores. */
  readonly searchThreads?: number;
  /** Name of the index; default: that of its directory. */
  readonly name?: string;
  /** Told in a few words what is being done, and at which stage. */
  readonly onProgress?: (doing: string, stage: 'verifying' | 'loading' | 'mapping') => void;
  /** Told what makes this retriever slower than it could be. */
  readonly onWarning?: (warning: string) => void;
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
    const encoder: TextEncoder = await openEncoder(
      options.model ?? recordedModel([folder, directory.folder], manifest),
      {
        workers: options.encoderThreads,
        device: options.device,
        shareWeights: options.shareWeights,
        precision: options.precision,
        preferredPrecisions: precisionsFor(manifest.model, options.device),
        overrides: {
          queryPrefix: manifest.model.prefixes.query,
          passagePrefix: manifest.model.prefixes.passage,
          pooling: manifest.model.pooling,
          normalize: manifest.model.normalize,
          maxQueryTokens: manifest.model.maxTokens.query,
          maxPassageTokens: manifest.model.maxTokens.passage,
          ...(manifest.model.fullDimension === undefined ? {} : { dimension: manifest.model.dimension }),
        },
      },
    );
    opened.push(encoder);
    const remark = checkSameModel(manifest.model, encoder.identity, {
      precisionAsked: options.precision !== undefined,
    });
    if (remark !== null) options.onWarning?.(remark);
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

export interface RetrieverParts {
  readonly encoder: TextEncoder;
  readonly index: VectorIndex;
  readonly passages: PassageStore;
  /** The rows that have not been removed, where some have. */
  readonly alive?: RowBitmap | undefined;
}

/** A retriever from its parts, in which calls meet: equal queries, bounds, and a queue in front of the engine. */
export function assembleRetriever(
  info: RetrieverInfo,
  { encoder, index, passages, alive }: RetrieverParts,
  { answerCache, singleFlight = true, maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES }: MeetingOptions = {},
): Retriever {
  const direct = new SearchRetriever(info, encoder, new QueuedIndex(index), passages, alive);
  return new SharingRetriever(new BoundedRetriever(direct, maxWaitingBytes), { answerCache, singleFlight });
}

/** The model's folder where the manifest remembers one and it is still there, else its name. */
function recordedModel(folders: readonly string[], { model, modelLocation }: IndexManifest): string {
  if (modelLocation === undefined) return model.name;
  const paths = folders.map((folder) => resolve(folder, modelLocation));
  return paths.find((path) => existsSync(path)) ?? model.name;
}

/** The index's own precision first. The CPU computes float16 slowly or not at all, so float32 goes before it there. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8') return ['int8'];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}
