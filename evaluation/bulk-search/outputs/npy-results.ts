import { usageError } from '../../../src/base/errors.ts';
import { type OutputShape, type ResultEncoder, rowOfHit } from './result-encoder.ts';

/** The row of a missing hit, as in FAISS. */
const NO_ROW = -1n;
/** Its score: the lowest float32, as FAISS writes it for inner products. */
const NO_SCORE = -3.4028234663852886e38;
/** Most hits of a query; the array has that many columns, also where fewer rows are found. */
const MAX_COLUMNS = 2 ** 24;

/**
 * The rows as a matrix of int64, queries × k, in NumPy's format; −1 where there are fewer hits or the query failed. With a score file
 * also the scores as float32.
 *
 * @throws TrawlError USAGE if k is too large for the columns of a matrix.
 */
export function npyResults({ queries, k, hasScoreFile }: OutputShape): ResultEncoder {
  if (k > MAX_COLUMNS) throw usageError(`--k is ${k}; a .npy file has a column for each hit, at most ${MAX_COLUMNS}.`);
  return {
    needsIds: false,
    pendingHits: 0,
    begin: () => (hasScoreFile ? ['<i8', '<f4'] : ['<i8']).map((type) => npyHeader(type, queries, k)),
    add(found) {
      const rows = new BigInt64Array(found.length * k).fill(NO_ROW);
      const scores = hasScoreFile ? new Float32Array(found.length * k).fill(NO_SCORE) : undefined;
      for (const [q, { hits }] of found.entries()) {
        for (const [i, hit] of hits.entries()) {
          rows[q * k + i] = BigInt(rowOfHit(hit));
          if (scores !== undefined) scores[q * k + i] = hit.score;
        }
      }
      return (scores === undefined ? [rows] : [rows, scores]).map(({ buffer }) => new Uint8Array(buffer));
    },
    end: () => [],
    state: () => null,
  };
}

/** The header of version 1.0 of NumPy's format (numpy/lib/format.py), padded so that the values begin at a multiple of 64 bytes. */
function npyHeader(type: string, rows: number, columns: number): Uint8Array {
  const description = `{'descr': '${type}', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  const bytes = Math.ceil((10 + description.length + 1) / 64) * 64;
  const header = Buffer.alloc(bytes, ' ');
  header.write('\x93NUMPY\x01\x00', 0, 'latin1');
  header.writeUInt16LE(bytes - 10, 8);
  header.write(description, 10, 'latin1');
  header.write('\n', bytes - 1);
  return header;
}
