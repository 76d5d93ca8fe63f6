import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { widenBfloat16, widenFloat16 } from '../../src/base/system/float16.ts';
import { invalidModel, readJsonFile } from '../../src/encoder/model/json-file.ts';
import { firstNonFinite } from '../../src/engine/typed-arrays.ts';
import { openSafetensors, type SafetensorsFile, type TensorEntry } from './safetensors.ts';

const SINGLE = 'model.safetensors';
/** In a sharded checkpoint, maps each tensor to its file. */
const INDEX = 'model.safetensors.index.json';

/** A weight of a checkpoint. Every call of `chunks` and `values` reads the file anew. */
export interface Weight {
  readonly name: string;
  readonly shape: readonly number[];
  /** Type in the file, as safetensors names it. `chunks` throws MODEL_INVALID unless it is F32, F16 or BF16. */
  readonly dtype: string;
  /** Values widened to float32, which is exact, in pieces of whole rows. Throws MODEL_INVALID for NaN and infinity. */
  chunks(): AsyncGenerator<Float32Array<ArrayBuffer>>;
  /** All values at once. The array must be smaller than 2^31 bytes. */
  values(): Promise<Float32Array<ArrayBuffer>>;
}

export function weightFrom({ name, shape, dtype, chunks }: Omit<Weight, 'values'>): Weight {
  async function values(): Promise<Float32Array<ArrayBuffer>> {
    const all = new Float32Array(shape.reduce((product, length) => product * length, 1));
    let at = 0;
    for await (const chunk of chunks()) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }
  return { name, shape, dtype, chunks, values };
}

/** Safetensors' names of the types that a weight may have. Tensors of other types, such as position ids, are buffers. */
export const WEIGHT_TYPES: readonly string[] = ['F32', 'F16', 'BF16'];

/** The weights of a checkpoint folder, from one safetensors file or from several shards. Close it after use. */
export class CheckpointWeights {
  /** Absolute paths of the safetensors files, sorted. */
  readonly files: readonly string[];
  readonly #open: readonly SafetensorsFile[];
  readonly #weights: ReadonlyMap<string, Weight>;

  private constructor(open: readonly SafetensorsFile[], weights: ReadonlyMap<string, Weight>) {
    this.#open = open;
    this.files = open.map((file) => file.path).sort();
    this.#weights = weights;
  }

  /** Reads and checks the header of every file. Throws MODEL_INVALID. */
  static async open(folder: string): Promise<CheckpointWeights> {
    const index = join(folder, INDEX);
    const isSingle = existsSync(join(folder, SINGLE));
    if (!isSingle && !existsSync(index)) throw await noWeightsError(folder);
    const shards = isSingle ? [[SINGLE, undefined] as const] : await readIndex(index);
    const open: SafetensorsFile[] = [];
    const weights = new Map<string, Weight>();
    try {
      for (const [shard, listed] of shards) {
        const file = await openSafetensors(join(folder, shard));
        open.push(file);
        for (const name of listed ?? file.tensors.keys()) {
          const tensor = file.tensors.get(name);
          if (tensor === undefined) {
            throw invalidModel(
              `${index} lists the tensor ${name} in ${shard}, but ${shard} does not contain it. Fetch the checkpoint again.`,
            );
          }
          weights.set(name, storedWeight(file, tensor));
        }
      }
      return new CheckpointWeights(open, weights);
    } catch (error) {
      for (const file of open) await file.close();
      throw error;
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

function storedWeight(file: SafetensorsFile, tensor: TensorEntry): Weight {
  async function* chunks(): AsyncGenerator<Float32Array<ArrayBuffer>> {
    for await (const bytes of file.chunks(tensor)) {
      const values = widen(file.path, tensor, bytes);
      checkFinite(file.path, tensor, values);
      yield values;
    }
  }
  return weightFrom({ ...tensor, chunks });
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
      throw invalidModel(
        `${path}: ${tensor.name} has the type ${tensor.dtype}. Expected one of ${WEIGHT_TYPES.join(', ')}. ` +
          'Save the model in one of these types, for example with torch_dtype=float32.',
      );
  }
}

function checkFinite(path: string, tensor: TensorEntry, values: Float32Array): void {
  const bad = firstNonFinite(values);
  if (bad < 0) return;
  throw invalidModel(
    `${path}: ${tensor.name} contains ${values[bad]}, so every vector of the model would be unusable. Use a checkpoint from ` +
      'before the training diverged.',
  );
}

/** Tensor names grouped by shard file, in the order of the index. */
async function readIndex(path: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { weight_map: map } = await readJsonFile(path);
  if (!isObject(map) || Object.keys(map).length === 0) {
    throw invalidModel(`${path} has no weight_map, which maps tensors to files. Fetch the checkpoint again.`);
  }
  const shards = new Map<string, string[]>();
  for (const [name, shard] of Object.entries(map as Readonly<Record<string, unknown>>)) {
    // No path separators: a shard must be in the folder of the index.
    if (typeof shard !== 'string' || !/^[^/\\\0]+\.safetensors$/.test(shard)) {
      throw invalidModel(
        `${path} lists the tensor ${name} in ${JSON.stringify(shard)}; it must be a .safetensors file in the same folder.`,
      );
    }
    const names = shards.get(shard);
    if (names === undefined) shards.set(shard, [name]);
    else names.push(name);
  }
  return shards;
}

async function noWeightsError(folder: string): Promise<TrawlError> {
  const names = await readdir(folder);
  const pickled = names.find((name) => /^pytorch_model.*\.bin(\.index\.json)?$/.test(name));
  if (pickled !== undefined) {
    return invalidModel(
      `The weights of ${folder} are in ${pickled}, a pickle, which can run code when it is loaded. If you trust it, convert ` +
        'it with Python: AutoModel.from_pretrained(folder).save_pretrained(folder) writes model.safetensors.',
    );
  }
  const foreign = names.find((name) => /\.(h5|msgpack|ot|gguf)$/.test(name));
  const has = foreign === undefined ? '' : ` The format of ${foreign} is not supported.`;
  return invalidModel(
    `${folder} has neither ${SINGLE} nor ${INDEX} nor an ONNX graph.${has} Fetch the checkpoint again.`,
  );
}
