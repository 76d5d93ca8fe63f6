import { usageError } from '../../../src/base/errors.ts';
import { type FileBytes, type FoundQuery, type OutputShape, type ResultEncoder, rowOfHit } from './result-encoder.ts';

/** Stands for the row of a missing hit, as in FAISS. */
const NO_ROW = -1n;
/** Its score: the lowest float32, as FAISS writes it for inner products. */
const NO_SCORE = -3.4028234663852886e38;
/** Most hits of a query; the array has that many columns, also where fewer rows are found. */
const MAX_COLUMNS = 2 ** 24;

/**
 * The rows as a matrix of int64, queries × k, in NumPy's format; −1 where there are fewer hits or the query failed. With a score file
 * also the scores as float32.
 */
export class NpyResults implements ResultEncoder {
  readonly needsIds = false;
  readonly pendingHits = 0;
  readonly #queries: number;
  readonly #k: number;
  readonly #hasScores: boolean;

  /** @throws TrawlError USAGE if k is too large for the columns of a matrix. */
  constructor({ queries, k, hasScoreFile }: OutputShape) {
    if (k > MAX_COLUMNS)
      throw usageError(`--k is ${k}; a .npy file has a column for each hit, at most ${MAX_COLUMNS}.`);
    this.#queries = queries;
    this.#k = k;
    this.#hasScores = hasScoreFile;
  }

  begin(): FileBytes {
    const shape = [this.#queries, this.#k] as const;
    return this.#files(npyHeader('<i8', shape), () => npyHeader('<f4', shape));
  }

  add(found: readonly FoundQuery[]): FileBytes {
    const k = this.#k;
    const rows = new BigInt64Array(found.length * k).fill(NO_ROW);
    for (const [q, { hits }] of found.entries()) {
      for (const [i, hit] of hits.entries()) rows[q * k + i] = BigInt(rowOfHit(hit));
    }
    return this.#files(bytesOf(rows), () => {
      const scores = new Float32Array(found.length * k).fill(NO_SCORE);
      for (const [q, { hits }] of found.entries()) {
        for (const [i, { score }] of hits.entries()) scores[q * k + i] = score;
      }
      return bytesOf(scores);
    });
  }

  end(): FileBytes {
    return [];
  }

  state(): unknown {
    return null;
  }

  #files(rows: Uint8Array, scores: () => Uint8Array): FileBytes {
    return this.#hasScores ? [rows, scores()] : [rows];
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: BigInt64Array | Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The header of version 1.0 of NumPy's format (numpy/lib/format.py), padded so that the values begin at a multiple of 64 bytes. */
function npyHeader(type: string, [rows, columns]: readonly [number, number]): Uint8Array {
  const description = `{'descr': '${type}', 'fortran_order': False, 'shape': (${rows}, ${columns}), }`;
  const bytes = Math.ceil((10 + description.length + 1) / 64) * 64;
  const header = Buffer.alloc(bytes, ' ');
  header.write('\x93NUMPY\x01\x00', 0, 'latin1');
  header.writeUInt16LE(bytes - 10, 8);
  header.write(description, 10, 'latin1');
  header.write('\n', bytes - 1);
  return header;
}
