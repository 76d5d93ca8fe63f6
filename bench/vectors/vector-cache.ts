import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { mkdir, open, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { codesBytes } from '../../src/engine/vectors/codes-size.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { encodeFlatHeader, encodeFp16Header } from '../../src/engine/vectors/faiss-format.ts';
import { SegmentReader, type VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { formatGigabytes } from '../report-format.ts';
import { GENERATOR_VERSION, SyntheticVectors } from './synthetic-vectors.ts';
import type { VectorBasis } from './vector-basis.ts';
import { openVectorFile, type VectorFile, vectorFileBytes } from './vector-file.ts';

export interface CacheContext {
  /** Folder of the cached files. */
  readonly folder: string;
  /** Undefined without the native engine: then there are no codes, and float16 rows cannot be generated. */
  readonly kernel: Kernel | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface SyntheticShape {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly seed: number;
  readonly basis: VectorBasis;
}

/** Rows that are generated or read at a time. */
const BLOCK_ROWS = 4096;

/** Progress is reported after this many rows. */
const PROGRESS_ROWS = 500_000;

/** The file of synthetic rows, generated if no earlier run left it. */
export async function syntheticFile(shape: SyntheticShape, context: CacheContext): Promise<VectorFile> {
  const { rows, dimension, dtype, seed, basis } = shape;
  const key = keyOf([GENERATOR_VERSION, rows, dimension, dtype, seed, basis.digest]);
  const path = join(context.folder, `synthetic-${rows}x${dimension}-${dtype}-${key}.faiss`);
  if (existsSync(path)) return openVectorFile(path);
  if (dtype === 'float16' && context.kernel === undefined) {
    throw new TrawlError(
      'ENGINE_MISSING',
      'Float16 rows need the native engine, which is not built. Run npm run build.',
    );
  }
  const fileBytes = vectorFileBytes(rows, dimension, dtype);
  await checkSpace(context, fileBytes + codesBytes(rows, dimension), `${rows} rows and their codes`);
  const vectors = new SyntheticVectors(basis, { seed, float16: dtype === 'float16' });
  const started = performance.now();
  const part = `${path}.part`;
  const file = await open(part, 'w');
  try {
    const header = { rows, dimension, metric: 'inner-product' } as const;
    await file.writeFile(dtype === 'float16' ? encodeFp16Header(header) : encodeFlatHeader(header));
    // Two blocks: one is written while the next is generated.
    const blocks = [new Float32Array(BLOCK_ROWS * dimension), new Float32Array(BLOCK_ROWS * dimension)];
    let writing: Promise<void> = Promise.resolve();
    for (const { first, count } of blocksOf(rows)) {
      throwIfCancelled(context.signal);
      const block = blocks[(first / BLOCK_ROWS) % 2]!.subarray(0, count * dimension);
      vectors.fill('rows', first, count, block);
      const values = dtype === 'float16' ? context.kernel!.toHalves(block) : block;
      await writing;
      writing = file.writeFile(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
      report(context, 'generated', first, count, rows);
      // Yield to the event loop, so that Ctrl-C is handled.
      await new Promise(setImmediate);
    }
    await writing;
    await file.sync();
    await file.close();
    await rename(part, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(part, { force: true });
    throw error;
  }
  context.note(`generated ${rows} vectors like ${basis.name} in ${secondsSince(started)} s: ${path}`);
  return openVectorFile(path);
}

/**
 * The codes of a file of vectors, made if no earlier run left them. Undefined without the native engine. `again` replaces
 * existing ones.
 */
export async function codesOf(
  file: VectorFile,
  context: CacheContext,
  { again = false }: { again?: boolean } = {},
): Promise<string | undefined> {
  const { kernel } = context;
  if (kernel === undefined) return undefined;
  const { rows, dimension, segment } = file;
  const { size, mtimeMs } = statSync(segment.path);
  const path = join(context.folder, `codes-${keyOf([realpathSync(segment.path), size, mtimeMs])}.i8`);
  if (existsSync(path) && !again) return path;
  await checkSpace(context, codesBytes(rows, dimension), `the codes of ${rows} rows`);
  const started = performance.now();
  const part = `${path}.part`;
  const writer = new CodesWriter(part, { metric: 'inner-product', dimension }, kernel);
  const reader = new SegmentReader([segment], dimension);
  try {
    const block = new Float32Array(BLOCK_ROWS * dimension);
    for (const { first, count } of blocksOf(rows)) {
      throwIfCancelled(context.signal);
      reader.read(first, count, block);
      await writer.append(block.subarray(0, count * dimension));
      report(context, 'encoded', first, count, rows);
    }
    await writer.finish();
    await rename(part, path);
  } catch (error) {
    writer.abandon();
    await rm(part, { force: true });
    throw error;
  } finally {
    reader.close();
  }
  // The old prefilter does not match the new codes.
  for (const stale of [prefilterPath(path), `${prefilterPath(path)}.none`]) await rm(stale, { force: true });
  context.note(`made the codes of ${rows} rows in ${secondsSince(started)} s: ${path}`);
  return path;
}

function prefilterPath(codes: string): string {
  return codes.replace(/codes-([^/]*)$/, 'prefilter-$1');
}

/**
 * The prefilter of cached codes, made if no earlier run left it. Undefined without the native engine, or if a prefilter would
 * not make searches faster.
 */
export async function prefilterOf(
  file: VectorFile,
  codes: string | undefined,
  context: CacheContext,
): Promise<string | undefined> {
  const { kernel, signal } = context;
  if (kernel === undefined || codes === undefined) return undefined;
  const path = prefilterPath(codes);
  const without = `${path}.none`;
  if (existsSync(path)) return path;
  if (existsSync(without)) return undefined;
  const started = performance.now();
  const part = `${path}.part`;
  const { rows, dimension, segment } = file;
  const source = { rows, dtype: segment.dtype, segments: [segment] };
  try {
    const { components, reason } = await kernel.makePrefilter(part, codes, source, dimension, 0, signal);
    context.note(`${reason} (${secondsSince(started)} s)`);
    if (components === 0) {
      await writeFile(without, reason);
      return undefined;
    }
    await rename(part, path);
    return path;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** @throws TrawlError DISK_FULL if the folder has too little free space for the files. */
async function checkSpace({ folder }: CacheContext, bytes: number, what: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { bavail, bsize } = await statfs(folder);
  if (bytes <= bavail * bsize) return;
  throw new TrawlError(
    'DISK_FULL',
    `${what} need ${formatGigabytes(bytes)}, but ${folder} has only ${formatGigabytes(bavail * bsize)} free. ` +
      'Use fewer --rows, or another folder with --cache.',
  );
}

function* blocksOf(rows: number): Generator<{ first: number; count: number }> {
  for (let first = 0; first < rows; first += BLOCK_ROWS) yield { first, count: Math.min(BLOCK_ROWS, rows - first) };
}

function report({ note }: CacheContext, done: string, first: number, count: number, rows: number): void {
  if (Math.floor((first + count) / PROGRESS_ROWS) > Math.floor(first / PROGRESS_ROWS)) {
    note(`${done} ${first + count} of ${rows} rows`);
  }
}

function keyOf(parts: readonly (string | number)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);
}

function secondsSince(started: number): string {
  return ((performance.now() - started) / 1000).toFixed(1);
}
