import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import { checkFits, type PrecomputedVectors } from '../../indexer/vectors/precomputed-vectors.ts';
import type { Metric } from '../../src/engine/metric.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { type FileType, fileBytes, writeVectors } from './vector-files/vector-files.ts';

export const encoder = new FakeTextEncoder();
export const DIMENSION = encoder.dimension;

export interface Made {
  readonly folder: string;
  readonly corpus: string[];
  readonly paths: string[];
  /** Row-major vectors of the passages. */
  readonly values: Float32Array;
}

/** A corpus, and a file with the vectors of its passages. */
export async function corpusAndVectors(
  t: TestContext,
  { fileType = 'faiss', rows = 500, cuts = [] }: { fileType?: FileType; rows?: number; cuts?: readonly number[] } = {},
): Promise<Made> {
  const folder = await tempFolder(t);
  const texts = Array.from({ length: rows }, (_, i) => `passage ${i}`);
  const corpus = writeCorpus(folder, { 'corpus.jsonl': texts.map((contents, id) => ({ id, contents })) });
  const values = new Float32Array(rows * DIMENSION);
  for (const [i, text] of texts.entries()) values.set(encoder.vectorOf(text), i * DIMENSION);
  const paths = writeVectors(folder, 'emb', Buffer.from(fileBytes(fileType, values, DIMENSION)), cuts);
  return { folder, corpus, paths, values };
}

export async function precomputed(
  paths: readonly string[],
  use: PrecomputedVectors['use'] = 'adopt',
  { fileType = 'faiss', metric, ...more }: { fileType?: FileType; metric?: Metric } & Partial<PrecomputedVectors> = {},
): Promise<PrecomputedVectors> {
  const dtype = fileType.endsWith('fp16') ? 'float16' : 'float32';
  const set = await openVectorFiles(paths, { dimension: DIMENSION, dtype });
  return { set, use, metric: checkFits(set, encoder.identity, metric), ...more };
}

export function out({ folder }: Made, name = 'index'): string {
  return join(folder, name);
}
