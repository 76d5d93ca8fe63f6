import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { EnginePrecision } from '../../engine/native/encoder-functions.ts';
import type { Precision } from '../identity/model-identity.ts';

export type { EnginePrecision };

/** The first bytes of a file of weights in int8 (native/src/encoder/bert_file.hpp). */
const INT8_MAGIC = 'TRAWLBI8';

/** Precisions in which the engine runs graphs of a model: bfloat16, and int8 if its file begins like weights and not like a graph. */
export async function enginePrecisionsOf(
  folder: string,
  graphs: readonly { readonly path: string; readonly precision: Precision }[],
): Promise<readonly EnginePrecision[]> {
  const found: EnginePrecision[] = [];
  for (const { path, precision } of graphs) {
    if (precision === 'bfloat16') found.push(precision);
    if (precision === 'int8' && (await hasWeights(resolve(folder, path)))) found.push(precision);
  }
  return found;
}

/** False for a file that cannot be read; opening it reports that. */
async function hasWeights(path: string): Promise<boolean> {
  const file = await open(path).catch(() => null);
  if (file === null) return false;
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(INT8_MAGIC.length), 0, INT8_MAGIC.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === INT8_MAGIC;
  } finally {
    await file.close();
  }
}
