import { open } from 'node:fs/promises';
import { widenFloat16 } from '../../src/base/system/float16.ts';
import type { RowPiece } from './row-files.ts';

export interface ScoredRow {
  readonly row: number;
  /** Dot product of row and query, summed in float64 in the order of the dimensions. */
  readonly score: number;
}

const BLOCK_ROWS = 8192;

/** Queries that are summed at a time, so that the processor need not wait for each sum. */
const TOGETHER = 4;

/** Rows in a file, row-major, from byte `offset` on (default: 0). */
export type ScannedPiece = RowPiece & { readonly offset?: number };

export interface ScanOptions {
  /** Row-major, a multiple of 4 queries. */
  readonly queries: Float32Array;
  readonly dimension: number;
  readonly k: number;
  /** The numbers in the files. Default: float16. */
  readonly dtype?: 'float16' | 'float32';
  readonly signal?: AbortSignal;
  note(text: string): void;
}

/**
 * The `k` rows with the largest dot products for each query, best first; of equal scores the lower row comes first. It reads every
 * row and shares no code with the engine.
 *
 * @throws the reason of the signal after an abort.
 */
export async function scanRows(
  pieces: readonly ScannedPiece[],
  { queries, dimension, k, dtype = 'float16', signal, note }: ScanOptions,
): Promise<ScoredRow[][]> {
  const count = queries.length / dimension;
  if (count % TOGETHER !== 0) throw new RangeError(`There must be a multiple of ${TOGETHER} queries, not ${count}.`);
  const lists = Array.from({ length: count }, (): ScoredRow[] => []);
  const values = Float64Array.from(widenFloat16(Uint16Array.from({ length: 2 ** 16 }, (_, half) => half)));
  const block = new (dtype === 'float16' ? Uint16Array : Float32Array)(BLOCK_ROWS * dimension);
  const rowBytes = dimension * block.BYTES_PER_ELEMENT;
  const row = new Float64Array(dimension);
  const wide = Float64Array.from(queries);
  const started = performance.now();
  const scores = new Float64Array(count);
  for (const [i, { path, first, rows, offset = 0 }] of pieces.entries()) {
    const file = await open(path);
    try {
      for (let from = 0; from < rows; from += BLOCK_ROWS) {
        signal?.throwIfAborted();
        const here = Math.min(BLOCK_ROWS, rows - from);
        const { bytesRead } = await file.read(block, 0, here * rowBytes, offset + from * rowBytes);
        if (bytesRead !== here * rowBytes) throw new Error(`${path} is shorter than ${rows} rows.`);
        for (let r = 0; r < here; r++) {
          for (let j = 0; j < dimension; j++) {
            const value = block[r * dimension + j]!;
            row[j] = dtype === 'float16' ? values[value]! : value;
          }
          dotProducts(row, wide, scores);
          for (let q = 0; q < count; q++) insert(lists[q]!, first + from + r, scores[q]!, k);
        }
      }
    } finally {
      await file.close();
    }
    const each = (performance.now() - started) / 1000 / (i + 1);
    note(`scanned ${first + rows} rows; ${Math.round(each * (pieces.length - i - 1))} s left`);
  }
  return lists;
}

function dotProducts(row: Float64Array, queries: Float64Array, scores: Float64Array): void {
  const dimension = row.length;
  for (let q = 0; q < scores.length; q += TOGETHER) {
    const a = q * dimension;
    const [b, c, d] = [a + dimension, a + 2 * dimension, a + 3 * dimension];
    let [sa, sb, sc, sd] = [0, 0, 0, 0];
    for (let j = 0; j < dimension; j++) {
      const value = row[j]!;
      sa += value * queries[a + j]!;
      sb += value * queries[b + j]!;
      sc += value * queries[c + j]!;
      sd += value * queries[d + j]!;
    }
    scores[q] = sa;
    scores[q + 1] = sb;
    scores[q + 2] = sc;
    scores[q + 3] = sd;
  }
}

function insert(list: ScoredRow[], row: number, score: number, k: number): void {
  if (list.length === k && score <= list[k - 1]!.score) return;
  const at = list.findIndex((other) => score > other.score);
  list.splice(at < 0 ? list.length : at, 0, { row, score });
  if (list.length > k) list.pop();
}
