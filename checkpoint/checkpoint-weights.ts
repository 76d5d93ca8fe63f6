import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readJsonFile } from '../src/embedding/json-file.ts';
import { TrawlError } from '../src/errors.ts';
import { widenBfloat16, widenFloat16 } from './float-formats.ts';
import { SafetensorsFile } from './safetensors.ts';
import type { TensorEntry } from './safetensors-header.ts';

/** One file, or the list of a sharded checkpoint's files. */
const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

/** A weight of a checkpoint; its values are read when asked for and not kept. */
export interface Weight {
  readonly name: string;
  readonly shape: readonly number[];
  /** Type in the file: F32, F16, BF16, or one that `chunks` refuses. */
  readonly dtype: string;
  /** Values as float32, which is exact, in pieces of whole rows. MODEL_INVALID for NaN and infinity. */
  chunks(): AsyncGenerator<Float32Array<ArrayBuffer>>;
  /** All values; for weights of less than 2^31 bytes. */
  values(): Promise<Float32Array<ArrayBuffer>>;
}

/** The types that hold weights; others are buffers, such as a table of positions. */
export const WEIGHT_TYPES: readonly string[] = ['F32', 'F16', 'BF16'];

/** The weights of a checkpoint folder, of one file or of shards. Close it after use. */
export class CheckpointWeights {
  /** Absolute paths of the files, sorted. */
  readonly files: readonly string[];
  readonly #open: readonly SafetensorsFile[];
  readonly #weights: ReadonlyMap<string, Weight>;

  private constructor(files: readonly SafetensorsFile[], weights: ReadonlyMap<string, Weight>) {
    this.#open = files;
    this.files = files.map((file) => file.path).sort();
    this.#weights = weights;
  }

  /** Reads every header and checks it. Errors: MODEL_INVALID. */
  static async open(folder: string): Promise<CheckpointWeights> {
    const files: SafetensorsFile[] = [];
    try {
      const single = join(folder, SINGLE);
      if (existsSync(single)) {
        files.push(await SafetensorsFile.open(single));
        return new CheckpointWeights(files, weightsOf(files[0]!, [...files[0]!.tensors.keys()]));
      }
      const path = join(folder, INDEX);
      if (!existsSync(path)) throw await withoutWeights(folder);
      return await openShards(folder, path, files);
    } catch (error) {
      for (const file of files) await file.close();
      throw error;
    }

    async function openShards(folder: string, path: string, files: SafetensorsFile[]): Promise<CheckpointWeights> {
      const weights = new Map<string, Weight>();
      for (const [shard, names] of await readIndex(path)) {
        const file = await SafetensorsFile.open(join(folder, shard));
        files.push(file);
        const missing = names.find((name) => !file.tensors.has(name));
        if (missing !== undefined) {
          throw invalid(`${path} says that ${missing} is in ${shard}, which has no such tensor.`);
        }
        for (const [name, weight] of weightsOf(file, names)) weights.set(name, weight);
      }
      return new CheckpointWeights(files, weights);
    }
  }

  get names(): readonly string[] {
    return [...this.#weights.keys()];
  }

  get(name: string): Weight | undefined {
    return this.#weights.get(name);
  }

  async close(): Promise<void> {
    for (const file of this.#open) await file.close();
  }
}

function weightsOf(file: SafetensorsFile, names: readonly string[]): ReadonlyMap<string, Weight> {
  return new Map(names.map((name) => [name, weightOf(file, file.tensors.get(name)!)]));
}

function weightOf(file: SafetensorsFile, tensor: TensorEntry): Weight {
  const { name, shape, dtype } = tensor;
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    for await (const bytes of file.chunks(tensor)) {
      const values = widen(file.path, tensor, bytes);
      checkFinite(file.path, tensor, values);
      yield values;
    }
  }
  async function values(): Promise<Float32Array<ArrayBuffer>> {
    const all = new Float32Array(tensor.elements);
    let at = 0;
    for await (const chunk of chunks()) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }
  return { name, shape, dtype, chunks, values };
}

function widen(path: string, tensor: TensorEntry, bytes: Uint8Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  switch (tensor.dtype) {
    case 'F32':
      return new Float32Array(bytes.buffer);
    case 'F16':
      return widenFloat16(new Uint16Array(bytes.buffer));
    case 'BF16':
      return widenBfloat16(new Uint16Array(bytes.buffer));
    default:
      throw invalid(
        `${path}: ${tensor.name} has the type ${tensor.dtype}; weights are ${WEIGHT_TYPES.join(', ')}. ` +
          'Save the model in one of these, for example with torch_dtype=float32.',
      );
  }
}

function checkFinite(path: string, tensor: TensorEntry, values: Float32Array): void {
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad < 0) return;
  throw invalid(
    `${path}: ${tensor.name} holds ${values[bad]}. A model with such a weight gives no usable vectors; take a checkpoint ` +
      'from before its training diverged.',
  );
}

/** Names of tensors by shard, in the order of the index. */
async function readIndex(path: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { weight_map: map } = await readJsonFile(path);
  if (typeof map !== 'object' || map === null || Array.isArray(map) || Object.keys(map).length === 0) {
    throw invalid(`${path} has no weight_map, the list of tensors with the file of each. Fetch the checkpoint again.`);
  }
  const shards = new Map<string, string[]>();
  for (const [name, shard] of Object.entries(map as Readonly<Record<string, unknown>>)) {
    // Shards lie beside their index, so a separator can only lead elsewhere.
    if (typeof shard !== 'string' || !/^[^/\\\0]+\.safetensors$/.test(shard)) {
      throw invalid(
        `${path} says that ${name} is in ${JSON.stringify(shard)}; a shard is a .safetensors file in the same folder.`,
      );
    }
    const names = shards.get(shard);
    if (names === undefined) shards.set(shard, [name]);
    else names.push(name);
  }
  return shards;
}

async function withoutWeights(folder: string): Promise<TrawlError> {
  const names = await readdir(folder);
  const pickled = names.find((name) => /^pytorch_model.*\.bin(\.index\.json)?$/.test(name));
  if (pickled !== undefined) {
    return invalid(
      `${folder} has its weights in ${pickled}, a pickle, which runs code when it is read. Convert it with Python where ` +
        'you trust it: AutoModel.from_pretrained(folder).save_pretrained(folder) writes model.safetensors.',
    );
  }
  const foreign = names.find((name) => /\.(h5|msgpack|ot|gguf)$/.test(name));
  const has = foreign === undefined ? '' : ` It has ${foreign}, which is not read.`;
  return invalid(`${folder} holds neither ${SINGLE} nor ${INDEX} nor an ONNX graph.${has} Fetch the checkpoint again.`);
}

function invalid(message: string): TrawlError {
  return new TrawlError('MODEL_INVALID', message);
}
