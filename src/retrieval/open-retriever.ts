import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { openEncoder } from '../embedding/open-encoder.ts';
import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import type { ModelIdentity, Precision } from '../manifest/model-identity.ts';
import { SqlitePassageStore } from '../passages/sqlite-passage-store.ts';
import { openEngine } from '../vector-index/open-engine.ts';
import { checkSameModel } from './compare-model.ts';
import { openIndexDirectory } from './index-directory.ts';
import type { RetrieverInfo } from './retriever.ts';
import { SearchRetriever } from './search-retriever.ts';

export interface OpenRetrieverOptions {
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
  /** Told in a few words what is being done. */
  readonly onProgress?: (doing: string) => void;
  /** Told what makes this retriever slower than it could be. */
  readonly onWarning?: (warning: string) => void;
}

/**
 * Opens an index directory with its query encoder. The encoder takes prefixes, pooling and limits from the index's
 * manifest, and its weights have to be those the index was made with.
 *
 * @throws TrawlError INDEX_…, MODEL_NOT_FOUND, MODEL_INVALID or MODEL_MISMATCH; nothing stays open then.
 */
export async function openRetriever(folder: string, options: OpenRetrieverOptions = {}): Promise<SearchRetriever> {
  const { onProgress = () => undefined } = options;
  onProgress('checking the index');
  const directory = openIndexDirectory(folder);
  const { manifest } = directory;
  const opened: { close(): Promise<void> }[] = [];
  try {
    onProgress(`loading the encoder ${manifest.model.name}`);
    const encoder: TextEncoder = await openEncoder(options.model ?? recordedModel(folder, manifest), {
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
    });
    opened.push(encoder);
    const remark = checkSameModel(manifest.model, encoder.identity, {
      precisionAsked: options.precision !== undefined,
    });
    if (remark !== null) options.onWarning?.(remark);
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
    return new SearchRetriever(info, encoder, index, passages, directory.source.alive);
  } catch (error) {
    await Promise.allSettled(opened.map((part) => part.close()));
    throw error;
  }
}

/** The model's folder where the manifest remembers one and it is still there, else its name. */
function recordedModel(folder: string, { model, modelLocation }: IndexManifest): string {
  if (modelLocation === undefined) return model.name;
  const path = resolve(folder, modelLocation);
  return existsSync(path) ? path : model.name;
}

/** The index's own precision first. The CPU computes float16 slowly or not at all, so float32 goes before it there. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8') return ['int8'];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}
