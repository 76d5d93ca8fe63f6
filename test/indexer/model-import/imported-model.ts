import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { type ImportedModel, type ImportOptions, importModel } from '../../../indexer/model-import/import-model.ts';
import { integerProductSettings } from '../../../src/encoder/inference/int8-runner.ts';
import { gelu, type ReferenceEncoder } from './reference-encoder.ts';
import { HIDDEN, LAYERS, type TinyCheckpoint } from './tiny-checkpoint.ts';

/** Three texts; the second and third end in padding. */
export const MASK = [
  [1, 1, 1, 1, 1, 1, 1],
  [1, 1, 1, 1, 0, 0, 0],
  [1, 0, 0, 0, 0, 0, 0],
];
export const IDS = [
  [2, 17, 45, 5, 118, 99, 3],
  [2, 60, 17, 3, 0, 0, 0],
  [2, 0, 0, 0, 0, 0, 0],
];
export const TYPES = MASK.map((row) => row.map((attended, i) => (attended === 1 && i > 2 ? 1 : 0)));

/** Imports a checkpoint, by default in float32, into a folder beside it. */
export async function imported(
  source: TinyCheckpoint | string,
  options: Partial<ImportOptions> = {},
): Promise<ImportedModel> {
  const folder = typeof source === 'string' ? source : source.folder;
  return importModel(folder, { out: `${folder}-out`, precisions: ['float32'], ...options });
}

/** Runs a graph on the three texts and returns its outputs by name. `padding` is the token id of padding. */
export async function runGraph(
  folder: string,
  graph: string,
  padding = 0,
): Promise<Record<string, { dims: readonly number[]; data: Float32Array }>> {
  const session = await InferenceSession.create(join(folder, graph), {
    intraOpNumThreads: 1,
    extra: { session: integerProductSettings() },
  });
  const ids = IDS.map((row, i) => row.map((id, j) => (MASK[i]![j] === 0 ? padding : id)));
  const all: Readonly<Record<string, number[][]>> = { input_ids: ids, attention_mask: MASK, token_type_ids: TYPES };
  const feeds = session.inputNames.map((name) => [
    name,
    new Tensor('int64', BigInt64Array.from(all[name]!.flat(), BigInt), [3, 7]),
  ]);
  const outputs = await session.run(Object.fromEntries(feeds));
  await session.release();
  return outputs as unknown as Record<string, { dims: readonly number[]; data: Float32Array }>;
}

/** The largest absolute difference between a graph's token vectors and the reference's; padding does not count. */
export function difference(
  reference: ReferenceEncoder,
  hidden: Float32Array,
  types: number[][],
  padding: number,
): number {
  let worst = 0;
  for (const [text, mask] of MASK.entries()) {
    const ids = IDS[text]!.map((id, i) => (mask[i] === 0 ? padding : id));
    const rows = reference.hidden(ids, types[text]!, mask);
    for (const [i, row] of rows.entries()) {
      if (mask[i] === 0) continue;
      const at = (text * mask.length + i) * HIDDEN;
      for (const [column, value] of row.entries()) worst = Math.max(worst, Math.abs(hidden[at + column]! - value));
    }
  }
  return worst;
}

export const ZEROS = MASK.map((row) => row.map(() => 0));
export const BERT = { layers: LAYERS, heads: 4, epsilon: 1e-5, activation: gelu, padding: null };
export const ROBERTA = { ...BERT, padding: 1 };
