import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { type BuildSummary, buildIndex } from '../../indexer/building/build-index.ts';
import { buildShardJob, type JobSummary } from '../../indexer/building/build-shard-job.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

/** Writes corpus files: an array as JSON lines, and compressed if the name ends in .gz. */
export function writeCorpus(folder: string, files: Readonly<Record<string, string | readonly object[]>>): string[] {
  return Object.entries(files).map(([name, content]) => {
    const path = join(folder, name);
    const text = typeof content === 'string' ? content : content.map((row) => `${JSON.stringify(row)}\n`).join('');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, name.endsWith('.gz') ? gzipSync(text) : text);
    return path;
  });
}

export type Build = Partial<BuildOptions> & Pick<BuildOptions, 'corpus' | 'out'>;

export function buildOptions(options: Build): BuildOptions {
  return {
    corpusOptions: {},
    encoder: new FakeTextEncoder(),
    passageTemplate: '{contents}',
    uniqueIds: false,
    onProgress: () => undefined,
    ...options,
  };
}

export function build(options: Build): Promise<BuildSummary> {
  return buildIndex(buildOptions(options));
}

/** Builds one shard of `of`. */
export function job(index: number, of: number, options: Build): Promise<JobSummary> {
  return buildShardJob({ ...buildOptions(options), shard: { index, of } });
}

export interface BuiltIndex {
  readonly manifest: IndexManifest;
  /** One array per row. */
  readonly vectors: readonly Float32Array[];
  readonly documents: readonly string[];
}

/** Reads an index of one shard, without the code of a retriever. */
export function readIndex(folder: string): BuiltIndex {
  const manifest = readIndexManifest(folder);
  const bytes = readFileSync(join(folder, 'shard-00000', 'vectors.faiss')).subarray(45);
  const { dimension, rows } = manifest;
  const vectors = Array.from({ length: rows }, (_, row) =>
    Float32Array.from({ length: dimension }, (_, column) => bytes.readFloatLE(4 * (row * dimension + column))),
  );
  const file = new PassageFile(join(folder, 'shard-00000', 'passages.sqlite'));
  try {
    return { manifest, vectors, documents: [...file.documents()] };
  } finally {
    file.close();
  }
}

/** The vectors of the texts. */
export async function vectorsOf(encoder: TextEncoder, texts: readonly string[]): Promise<Float32Array[]> {
  const { vectors } = await encoder.encode(texts, { inputType: 'passage' });
  return texts.map((_, i) => vectors.slice(i * encoder.dimension, (i + 1) * encoder.dimension));
}
