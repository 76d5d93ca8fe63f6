import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { mkdir, open, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { codesBytes } from '../src/vector-index/codes-size.ts';
import { CodesWriter } from '../src/vector-index/codes-writer.ts';
import { encodeFlatHeader } from '../src/vector-index/faiss-format.ts';
import { encodeFp16Header } from '../src/vector-index/faiss-fp16-format.ts';
import type { Kernel } from '../src/vector-index/kernel.ts';
import { SegmentReader, type VectorDtype } from '../src/vector-index/vector-segments.ts';
import { formatGigabytes } from './report.ts';
import { GENERATOR_VERSION, SyntheticVectors } from './synthetic-vectors.ts';
import type { VectorBasis } from './vector-basis.ts';
import { openVectorFile, type VectorFile, vectorFileBytes } from './vector-file.ts';

export interface CacheContext {
  /** Where the files are kept for the next run. */
  readonly folder: string;
  /** Absent: no codes, and no float16. */
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

/** Rows made or read at a time. */
const BLOCK_ROWS = 4096;

/** Said after so many rows. */
const PROGRESS_ROWS = 500_000;

/** The file of synthetic rows, made unless an earlier run made it. */
export async function syntheticFile(shape: SyntheticShape, context: CacheContext): Promise<VectorFile> {
  const { rows, dimension, dtype, seed, basis } = shape;
  const key = keyOf([GENERATOR_VERSION, rows, dimension, dtype, seed, basis.digest]);
  const path = join(context.folder, `synthetic-${rows}x${dimension}-${dtype}-${key}.faiss`);
  if (existsSync(path)) return openVectorFile(path);
  if (dtype === 'float16' && context.kernel === undefined) {
    throw new TrawlError(
      'ENGINE_MISSING',
      'Float16 rows are made by the native engine, which is not there: npm run setup.',
    );
  }
  const fileBytes = vectorFileBytes(rows, dimension, dtype);
  await checkSpace(context, fileBytes + codesBytes(rows, dimension), `${rows} rows and their codes`);
  const made = new SyntheticVectors(basis, { seed, float16: dtype === 'float16' });
  const started = performance.now();
  const part = `${path}.part`;
  const file = await open(part, 'w');
  try {
    const header = { rows, dimension, metric: 'inner-product' } as const;
    await file.writeFile(dtype === 'float16' ? encodeFp16Header(header) : encodeFlatHeader(header));
    // Two blocks: one is written while the next is made.
    const blocks = [new Float32Array(BLOCK_ROWS * dimension), new Float32Array(BLOCK_ROWS * dimension)];
    let writing: Promise<void> = Promise.resolve();
    for (const { first, count } of blocksOf(rows)) {
      throwIfCancelled(context.signal);
      const block = blocks[(first / BLOCK_ROWS) % 2]!.subarray(0, count * dimension);
      made.fill('rows', first, count, block);
      const values = dtype === 'float16' ? context.kernel!.toHalves(block) : block;
      await writing;
      writing = file.writeFile(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
      report(context, 'made', first, count, rows);
      // A turn of the event loop, so that Ctrl-C is heard.
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
  context.note(`made ${rows} vectors like ${basis.name} in ${secondsSince(started)} s: ${path}`);
  return openVectorFile(path);
}

/**
 * The first-pass codes of a file of vectors, made unless an earlier run made them. Undefined without the native engine.
 * `again`: made in any case.
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
  // A screen belongs to the codes that it was made with.
  for (const stale of [screenPath(path), `${screenPath(path)}.none`]) await rm(stale, { force: true });
  context.note(`made the codes of ${rows} rows in ${secondsSince(started)} s: ${path}`);
  return path;
}

function screenPath(codes: string): string {
  return codes.replace(/codes-([^/]*)$/, 'screen-$1');
}

/**
 * The screen of cached codes, where one pays, made unless an earlier run made it. Undefined where none pays, or without
 * the native engine.
 */
export async function screenOf(
  file: VectorFile,
  codes: string | undefined,
  context: CacheContext,
): Promise<string | undefined> {
  const { kernel, signal } = context;
  if (kernel === undefined || codes === undefined) return undefined;
  const path = screenPath(codes);
  const without = `${path}.none`;
  if (existsSync(path)) return path;
  if (existsSync(without)) return undefined;
  const started = performance.now();
  const part = `${path}.part`;
  const { rows, dimension, segment } = file;
  const source = { rows, dtype: segment.dtype, segments: [segment] };
  try {
    const { directions, reason } = await kernel.makeScreen(part, codes, source, dimension, { signal });
    context.note(`${reason} (${secondsSince(started)} s)`);
    if (directions === 0) {
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

/** @throws TrawlError DISK_FULL before anything is begun. */
async function checkSpace({ folder }: CacheContext, bytes: number, what: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { bavail, bsize } = await statfs(folder);
  if (bytes <= bavail * bsize) return;
  throw new TrawlError(
    'DISK_FULL',
    `${what} take ${formatGigabytes(bytes)} and ${folder} has ${formatGigabytes(bavail * bsize)} free. ` +
      'Take fewer --rows, or another folder with --cache.',
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
