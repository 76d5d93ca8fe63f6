import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openEmbeddings } from '../../embeddings/open-embeddings.ts';
import { checkFits, type GivenVectors } from '../../indexer/vectors/given-vectors.ts';
import type { Metric } from '../../src/metric.ts';
import { fileBytes, type Kind, writeVectors } from '../embeddings/vector-files.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

export const encoder = new FakeTextEncoder();
export const DIMENSION = encoder.dimension;

export interface Made {
  readonly folder: string;
  readonly corpus: string[];
  readonly paths: string[];
  /** Row-major: what the encoder gives for the passages. */
  readonly values: Float32Array;
}

/** A corpus, and the vectors that the test's encoder gives for it in a file of the kind. */
export async function corpusAndVectors(
  t: TestContext,
  { kind = 'faiss', rows = 500, cuts = [] }: { kind?: Kind; rows?: number; cuts?: readonly number[] } = {},
): Promise<Made> {
  const folder = await tempFolder(t);
  const texts = Array.from({ length: rows }, (_, i) => `passage ${i}`);
  const corpus = writeCorpus(folder, { 'corpus.jsonl': texts.map((contents, id) => ({ id, contents })) });
  const values = new Float32Array(rows * DIMENSION);
  for (const [i, text] of texts.entries()) values.set(encoder.vectorOf(text), i * DIMENSION);
  const paths = writeVectors(folder, 'emb', Buffer.from(fileBytes(kind, values, DIMENSION)), cuts);
  return { folder, corpus, paths, values };
}

export function given(
  paths: readonly string[],
  use: GivenVectors['use'] = 'adopt',
  { kind = 'faiss', metric, ...more }: { kind?: Kind; metric?: Metric } & Partial<GivenVectors> = {},
): GivenVectors {
  const dtype = kind.endsWith('fp16') ? 'float16' : 'float32';
  const set = openEmbeddings(paths, { dimension: DIMENSION, dtype });
  return { set, use, metric: checkFits(set, encoder.identity, metric), ...more };
}

export function out({ folder }: Made, name = 'index'): string {
  return join(folder, name);
}
