import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { seededRandom } from '../helpers/seeded-random.ts';

export interface CheckpointToWrite {
  /** The content of config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Shapes of the tensors by their names. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly tokenizer: Buffer;
  /** JSON files by their path in the folder. */
  readonly files: Readonly<Record<string, unknown>>;
}

/** Spread of the weights: that of BERT after its initialisation. */
const DEVIATION = 0.02;

/** Writes a checkpoint with random float32 weights, one tensor at a time, so that its size does not matter. */
export function writeRandomCheckpoint(folder: string, { config, shapes, tokenizer, files }: CheckpointToWrite): void {
  for (const [path, content] of Object.entries({ 'config.json': config, ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), JSON.stringify(content));
  }
  writeFileSync(join(folder, 'tokenizer.json'), tokenizer);
  const header: Record<string, object> = {};
  let end = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const begin = end;
    end += 4 * sizeOf(shape);
    header[name] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const random = seededRandom(23);
  const file = openSync(join(folder, 'model.safetensors'), 'wx');
  try {
    writeSync(file, length);
    writeSync(file, text);
    for (const [name, shape] of Object.entries(shapes)) writeSync(file, valuesOf(name, sizeOf(shape), random));
  } finally {
    closeSync(file);
  }
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}

/** Weights are evenly spread, those of norms around 1. */
function valuesOf(name: string, length: number, random: () => number): Uint8Array {
  const values = new Float32Array(length);
  const around = /norm.*weight$/i.test(name) ? 1 : 0;
  const width = DEVIATION * Math.sqrt(12);
  for (let i = 0; i < length; i++) values[i] = around + (random() - 0.5) * width;
  return new Uint8Array(values.buffer);
}
