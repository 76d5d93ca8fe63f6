import { copyFile, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** Dimension of every toy graph. */
export const TOY_DIMENSION = 10;

export type ToyGraph = 'toy.onnx' | 'exported.onnx' | 'slow.onnx';

export function fixture(name: string): string {
  return join(packageRoot, 'test', 'encoder', 'fixtures', name);
}

/** Writes a model folder with a toy graph and returns its path; `change` edits trawl-model.json before it is written. */
export async function toyModel(
  t: TestContext,
  options: { graph?: ToyGraph; change?: (description: Record<string, unknown>) => void } = {},
): Promise<string> {
  const folder = join(await tempFolder(t), 'toy');
  await copyFixture(folder, options.graph ?? 'toy.onnx', 'model.onnx');
  await copyFixture(folder, 'tokenizer.json', 'tokenizer.json');
  const description: Record<string, unknown> = {
    format: 'trawl-model',
    version: 1,
    name: 'toy',
    architecture: 'toy',
    dimension: TOY_DIMENSION,
    pooling: 'mean',
    normalize: true,
    similarity: 'inner-product',
    prefixes: { query: '', passage: '' },
    maxTokens: { query: 32, passage: 64 },
    graph: { path: 'model.onnx', precision: 'float32', output: 'last_hidden_state' },
    tokenizer: { path: 'tokenizer.json' },
    batchInvariant: true,
    source: { script: 'test/encoder/fixtures/make_models.py' },
    license: 'Apache-2.0',
    files: [await fileRecord(folder, 'model.onnx'), await fileRecord(folder, 'tokenizer.json')],
  };
  options.change?.(description);
  await writeJson(join(folder, 'trawl-model.json'), description);
  return folder;
}

/**
 * Writes a folder as sentence-transformers lays it out, named `name`, and returns its path. `files` are JSON files by path; a
 * null value leaves a file out.
 */
export async function transformersModel(
  t: TestContext,
  name: string,
  files: Readonly<Record<string, unknown>> = {},
  graphPath = 'onnx/model.onnx',
): Promise<string> {
  const folder = join(await tempFolder(t), name);
  await copyFixture(folder, 'exported.onnx', graphPath);
  await copyFixture(folder, 'tokenizer.json', 'tokenizer.json');
  const all: Record<string, unknown> = {
    'config.json': { model_type: 'bert', hidden_size: TOY_DIMENSION, max_position_embeddings: 512 },
    'tokenizer_config.json': { model_max_length: 512 },
    ...files,
  };
  for (const [path, value] of Object.entries(all)) {
    if (value !== null) await writeJson(join(folder, path), value);
  }
  return folder;
}

export async function writeJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(value));
}

async function copyFixture(folder: string, from: string, to: string): Promise<void> {
  await mkdir(dirname(join(folder, to)), { recursive: true });
  await copyFile(fixture(from), join(folder, to));
}

async function fileRecord(folder: string, path: string): Promise<{ path: string; bytes: number; sha256: string }> {
  const full = join(folder, path);
  return { path, bytes: (await stat(full)).size, sha256: await sha256OfFile(full) };
}
