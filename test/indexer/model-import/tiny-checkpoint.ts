import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { narrowToFloat16, widenBfloat16, widenFloat16 } from '../../../src/base/system/float16.ts';
import { fixture, writeJson } from '../../encoder/model-fixtures.ts';
import { bertShapes } from '../../helpers/bert-shapes.ts';
import { encodeSafetensors, float32Bytes, type TensorToWrite } from '../../helpers/safetensors.ts';
import { seededNormal } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import type { ReferenceTensor } from './reference-encoder.ts';

/** The fixture tokenizer has 119 tokens. */
export const VOCABULARY = 120;
export const HIDDEN = 16;
const INNER = 24;
export const LAYERS = 2;
export const POSITIONS = 40;

type Dtype = 'F32' | 'F16' | 'BF16';

/** A family of encoders other than BERT's. */
export interface TinyFamily {
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  /** The content of config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  /** JSON files by their path in the folder. */
  readonly files?: Readonly<Record<string, unknown>>;
}

export interface TinyOptions {
  readonly family?: TinyFamily;
  readonly modelType?: string;
  readonly dtype?: Dtype;
  /** Fields to add to config.json or to replace in it. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Prefix of the tensor names, except those in `tensors`. */
  readonly prefix?: string;
  /** Number of shards; 0 for one file without an index. */
  readonly shards?: number;
  readonly tokenTypes?: number;
  /** Shapes of further tensors, by their full names; [] removes a tensor. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** Edits the tensors before they are written. */
  readonly change?: (tensors: Record<string, TensorToWrite>) => void;
}

export interface TinyCheckpoint {
  readonly folder: string;
  /** The values in the file, by tensor name without the prefix. */
  readonly tensors: Readonly<Record<string, ReferenceTensor>>;
}

/** Writes a checkpoint folder with random weights, as `save_pretrained` lays it out. */
export async function tinyCheckpoint(t: TestContext, options: TinyOptions = {}): Promise<TinyCheckpoint> {
  const { modelType = 'bert', dtype = 'F32', prefix = '', shards = 0, tokenTypes = 2, config = {}, family } = options;
  const folder = join(await tempFolder(t), 'tiny');
  await mkdir(folder);
  const normal = seededNormal(11);
  const tensors: Record<string, ReferenceTensor> = {};
  const written: Record<string, TensorToWrite> = {};
  for (const [name, shape] of Object.entries({ ...(family?.shapes ?? shapes(tokenTypes)), ...options.tensors })) {
    if (shape.length === 0) continue;
    const isNorm = /(norm[12]?|_ln)\.weight$/i.test(name);
    const [centre, spread] = isNorm ? [1, 0.2] : [0, 0.3];
    const count = shape.reduce((product, length) => product * length, 1);
    const { values, bytes } = converted(
      dtype,
      Float32Array.from({ length: count }, () => centre + spread * normal()),
    );
    tensors[name] = { shape, values };
    written[options.tensors?.[name] === undefined ? prefix + name : name] = { dtype, shape, bytes };
  }
  options.change?.(written);
  await writeWeights(folder, written, shards);
  await copyFile(fixture('tokenizer.json'), join(folder, 'tokenizer.json'));
  await writeJson(join(folder, 'config.json'), { ...(family?.config ?? bertConfig(modelType, tokenTypes)), ...config });
  for (const [path, content] of Object.entries(family?.files ?? {})) await writeJson(join(folder, path), content);
  return { folder, tensors };
}

function bertConfig(modelType: string, tokenTypes: number): Readonly<Record<string, unknown>> {
  return {
    model_type: modelType,
    hidden_size: HIDDEN,
    num_hidden_layers: LAYERS,
    num_attention_heads: 4,
    intermediate_size: INNER,
    hidden_act: 'gelu',
    layer_norm_eps: 1e-5,
    max_position_embeddings: POSITIONS,
    vocab_size: VOCABULARY,
    type_vocab_size: tokenTypes,
    pad_token_id: 0,
  };
}

function shapes(tokenTypes: number): Record<string, readonly number[]> {
  return {
    ...bertShapes({
      hidden: HIDDEN,
      inner: INNER,
      layers: LAYERS,
      vocabulary: VOCABULARY,
      positions: POSITIONS,
      tokenTypes,
    }),
    'pooler.dense.weight': [HIDDEN, HIDDEN],
    'pooler.dense.bias': [HIDDEN],
  };
}

/** Converts values to a type; returns their bytes and the values that the bytes hold. */
function converted(dtype: Dtype, exact: Float32Array<ArrayBuffer>): { values: Float32Array; bytes: Uint8Array } {
  if (dtype === 'F32') return { values: exact, bytes: float32Bytes(exact) };
  const words = dtype === 'F16' ? narrowToFloat16(exact) : upperHalves(exact);
  const values = dtype === 'F16' ? widenFloat16(words) : widenBfloat16(words);
  return { values, bytes: new Uint8Array(words.buffer) };
}

function upperHalves(values: Float32Array<ArrayBuffer>): Uint16Array<ArrayBuffer> {
  return Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);
}

async function writeWeights(folder: string, tensors: Record<string, TensorToWrite>, shards: number): Promise<void> {
  if (shards === 0) {
    await writeFile(join(folder, 'model.safetensors'), encodeSafetensors(tensors));
    return;
  }
  const files = Array.from({ length: shards }, (_, i) => `model-${i + 1}-of-${shards}.safetensors`);
  const names = Object.keys(tensors);
  const map = Object.fromEntries(names.map((name, i) => [name, files[i % shards]!]));
  for (const file of files) {
    const own = names.filter((name) => map[name] === file).map((name) => [name, tensors[name]!]);
    await writeFile(join(folder, file), encodeSafetensors(Object.fromEntries(own)));
  }
  await writeJson(join(folder, 'model.safetensors.index.json'), { metadata: {}, weight_map: map });
}
