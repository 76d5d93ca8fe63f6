import { execFile, spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { mkdir, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { encodeFp16Header, FAISS_FP16_HEADER_BYTES } from '../../src/engine/vectors/faiss-format.ts';
import { encodeBasis } from '../vectors/synthetic-vectors.ts';
import type { VectorBasis } from '../vectors/vector-basis.ts';

const SOURCE = join(packageRoot, 'bench', 'size', 'synthetic_rows.cpp');

/** Rows of one file: a stopped run makes at most one of them again. */
const PIECE_ROWS = 1_000_000;

/** A part of the rows, in a file of its own. */
export interface RowPiece {
  readonly path: string;
  readonly first: number;
  readonly rows: number;
}

export interface RowFiles {
  /** The header of a FAISS float16 file. Header and pieces one after another are that file. */
  readonly header: string;
  /** In the order of the rows; float16, row-major. */
  readonly pieces: readonly RowPiece[];
}

/** The files that hold `rows` rows in a folder. They need not exist. */
export function rowFiles(folder: string, rows: number): RowFiles {
  const nameOf = (number: number): string => join(folder, String(number).padStart(3, '0'));
  const pieces: RowPiece[] = [];
  for (let first = 0; first < rows; first += PIECE_ROWS) {
    pieces.push({ path: nameOf(pieces.length + 1), first, rows: Math.min(PIECE_ROWS, rows - first) });
  }
  return { header: nameOf(0), pieces };
}

/** Compiles the generator with the compiler of the engine. @throws Error with the compiler's message. */
async function compileGenerator(program: string): Promise<void> {
  const flags = ['-std=c++20', '-O3', '-march=native', '-ffast-math', '-o', program, SOURCE];
  await promisify(execFile)('g++', flags);
}

/** Writes the first `rows` synthetic rows of a seed to files, those that no earlier run left. */
export async function writeRows(
  folder: string,
  { basis, seed, rows }: { readonly basis: VectorBasis; readonly seed: number; readonly rows: number },
  { signal, note }: { readonly signal: AbortSignal; note(text: string): void },
): Promise<RowFiles> {
  const { dimension } = basis;
  const files = rowFiles(join(folder, 'rows'), rows);
  await mkdir(join(folder, 'rows'), { recursive: true });
  const [program, basisFile] = [join(folder, 'synthetic-rows'), join(folder, 'basis')];
  if (!existsSync(program)) await compileGenerator(program);
  await writeFile(basisFile, encodeBasis(basis));
  if (!isWhole(files.header, FAISS_FP16_HEADER_BYTES)) {
    await writeFile(files.header, encodeFp16Header({ rows, dimension, metric: 'inner-product' }));
  }
  const missing = files.pieces.filter((piece) => !isWhole(piece.path, piece.rows * dimension * 2));
  const started = performance.now();
  for (const [i, { path, first, rows: count }] of missing.entries()) {
    await generate(program, [basisFile, String(seed), String(first), String(count)], `${path}.new`, signal);
    await rename(`${path}.new`, path);
    const each = (performance.now() - started) / 1000 / (i + 1);
    note(`rows ${first} to ${first + count} are written; ${Math.round(each * (missing.length - i - 1))} s left`);
  }
  return files;
}

async function generate(program: string, words: readonly string[], path: string, signal: AbortSignal): Promise<void> {
  const file = await open(path, 'w');
  try {
    const child = spawn(program, words, { signal, stdio: ['ignore', file.fd, 'pipe'] });
    let message = '';
    child.stderr!.on('data', (data) => {
      message += data;
    });
    const [code] = await Promise.all([
      new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve)),
      finished(child.stderr!),
    ]);
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${message.trim()}`);
    await file.sync();
  } finally {
    await file.close();
  }
}

function isWhole(path: string, bytes: number): boolean {
  return existsSync(path) && statSync(path).size === bytes;
}
