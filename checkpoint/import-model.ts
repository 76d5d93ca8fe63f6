import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { throwIfCancelled } from '../src/abort.ts';
import { EncoderPool } from '../src/embedding/encoder-pool.ts';
import { readJsonFile } from '../src/embedding/json-file.ts';
import { sha256OfText } from '../src/embedding/model-checksum.ts';
import { readModelFolder } from '../src/embedding/model-folder.ts';
import { readTransformersFacts } from '../src/embedding/transformers-folder.ts';
import {
  graphsOf,
  TRAWL_MODEL_FILE,
  TRAWL_MODEL_VERSION,
  type TrawlModelFile,
  type TrawlModelGraph,
} from '../src/embedding/trawl-model-file.ts';
import { isNodeError, TrawlError } from '../src/errors.ts';
import { sha256OfFile } from '../src/file-checksum.ts';
import { PRECISIONS, type Precision } from '../src/manifest/model-identity.ts';
import { syncFolder, writeJsonDurably } from '../src/manifest/write-json.ts';
import { bertGraph } from './bert-graph.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { parseEncoderConfig } from './encoder-config.ts';
import { findEncoderWeights } from './encoder-weights.ts';
import { bytesOfTensor } from './onnx-graph.ts';
import { writeOnnx } from './onnx-writer.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';

/** Where a model came from, for people and for a later check. */
export interface ModelSource {
  readonly kind: 'folder' | 'hub';
  /** The hub's id, or the folder's name. */
  readonly id: string;
  readonly revision?: string | undefined;
  readonly files?: readonly { readonly path: string; readonly bytes: number; readonly sha256: string }[] | undefined;
}

export interface ImportProgress {
  /** `read` (checksums of the source), `write <precision>`, `check <precision>`. */
  readonly stage: string;
  /** In bytes for `read` and `write`, 0 or 1 for `check`. */
  readonly done: number;
  readonly total: number;
}

export interface ImportOptions {
  /** The folder to make. It must not exist. */
  readonly out: string;
  /** Default: the source's id, else the folder's name. */
  readonly name?: string | undefined;
  /** Graphs to make, the first one the default; default float32 and int8. */
  readonly precisions?: readonly Precision[] | undefined;
  readonly source?: ModelSource | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface ImportedModel {
  /** Absolute. */
  readonly folder: string;
  readonly description: TrawlModelFile;
}

const DEFAULT: readonly Precision[] = ['float32', 'int8'];

const GRAPH_FILES: Readonly<Record<Precision, string>> = {
  float32: 'model.onnx',
  int8: 'model-int8.onnx',
  float16: 'model-float16.onnx',
};

/**
 * Makes a model folder of a checkpoint folder. Everything that can be told from configs and headers is checked before
 * anything is written; the folder is put together under another name and is there whole or not at all. Errors:
 * MODEL_INVALID, MODEL_NOT_FOUND, CONFIG_INVALID, OUTPUT_NOT_WRITABLE, DISK_FULL, CANCELLED.
 */
export async function importModel(sourceFolder: string, options: ImportOptions): Promise<ImportedModel> {
  const source = resolve(sourceFolder);
  const out = resolve(options.out);
  await checkFolders(source, out);
  const weights = await CheckpointWeights.open(source);
  try {
    const config = parseEncoderConfig(await readJsonFile(join(source, 'config.json')), join(source, 'config.json'));
    const encoder = findEncoderWeights(weights, config);
    const tokenizer = await readSourceTokenizer(source, config.vocabularySize);
    const names = options.source === undefined ? [] : [options.source.id];
    const { identity, maxPositions } = await readTransformersFacts(source, names);
    const precisions = options.precisions ?? DEFAULT;

    const partial = `${out}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    try {
      const graphs: TrawlModelGraph[] = [];
      const paths: string[] = [];
      for (const precision of precisions) {
        const graph = bertGraph(config, encoder, precision);
        const total = graph.tensors.reduce((sum, tensor) => sum + bytesOfTensor(tensor), 0);
        let done = 0;
        const onBytes = (bytes: number) => {
          done += bytes;
          options.onProgress?.({ stage: `write ${precision}`, done, total });
        };
        const [path, ...external] = await writeOnnx(join(partial, GRAPH_FILES[precision]), graph, {
          signal: options.signal,
          onBytes,
        });
        paths.push(path!, ...external);
        const externalData = external.map((file) => basename(file));
        graphs.push({ path: basename(path!), precision, ...(externalData.length > 0 ? { externalData } : {}) });
      }
      await writeFile(join(partial, 'tokenizer.json'), JSON.stringify(tokenizer));
      paths.push(join(partial, 'tokenizer.json'));
      const files = [];
      for (const path of paths) {
        files.push({
          path: basename(path),
          bytes: (await stat(path)).size,
          sha256: await sha256OfFile(path, options.signal),
        });
      }
      const sums: string[] = [];
      for (const file of weights.files) sums.push(await sha256OfFile(file, options.signal));
      const description: TrawlModelFile & { readonly source: ModelSource } = {
        format: 'trawl-model',
        version: TRAWL_MODEL_VERSION,
        name: options.name ?? options.source?.id ?? basename(source),
        kind: 'encoder',
        architecture: config.modelType,
        dimension: identity.dimension,
        pooling: identity.pooling,
        normalize: identity.normalize,
        similarity: identity.similarity,
        prefixes: { ...identity.prefixes },
        maxTokens: { ...identity.maxTokens },
        ...(maxPositions === null ? {} : { maxPositions }),
        graph: graphs[0]!,
        graphs,
        tokenizer: { path: 'tokenizer.json' },
        batchInvariant: true,
        weightsSha256: sha256OfText(sums.join('')),
        source: options.source ?? { kind: 'folder', id: basename(source) },
        files,
      };
      await writeJsonDurably(join(partial, TRAWL_MODEL_FILE), description);
      for (const graph of graphsOf(description)) {
        throwIfCancelled(options.signal);
        const model = await readModelFolder(partial, {}, { precision: graph.precision });
        const pool = await EncoderPool.open({ model, workers: 1 });
        try {
          const { outcomes } = await pool.encode(['a short text'], { kind: 'passage' });
          if (!outcomes[0]!.ok) throw outcomes[0]!.error;
        } finally {
          await pool.close();
        }
      }
      await rename(partial, out);
      await syncFolder(dirname(out));
      return { folder: out, description };
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      throw error;
    }
  } finally {
    await weights.close();
  }
}

async function checkFolders(source: string, out: string): Promise<void> {
  try {
    if (!(await stat(source)).isDirectory()) throw new TrawlError('MODEL_NOT_FOUND', `${source} is not a folder.`);
  } catch (error) {
    if (!isNodeError(error)) throw error;
    throw new TrawlError('MODEL_NOT_FOUND', `There is no folder ${source}.`, { cause: error });
  }
  if (existsSync(out)) {
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `${out} exists already. Remove it or choose another name.`);
  }
}
void PRECISIONS;
