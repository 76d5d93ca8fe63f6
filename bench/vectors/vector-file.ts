import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import {
  decodeFlatHeader,
  decodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  FAISS_HEADER_BYTES,
  flatFileBytes,
  fp16FileBytes,
} from '../../src/engine/vectors/faiss-format.ts';
import type { VectorDtype, VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

/** The rows of a FAISS inner-product file. */
export interface VectorFile {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly segment: VectorSegment;
}

/**
 * Opens a flat inner-product file of FAISS, float32 (IxFI) or float16 (IxSQ).
 *
 * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_FOREIGN, INDEX_FILE_TRUNCATED.
 */
export function openVectorFile(path: string): VectorFile {
  const header = new Uint8Array(FAISS_FP16_HEADER_BYTES);
  let fileBytes: number;
  let got: number;
  try {
    fileBytes = statSync(path).size;
    const file = openSync(path, 'r');
    try {
      got = readSync(file, header, 0, header.length, 0);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw new TrawlError('INDEX_FILE_MISSING', `${path}: cannot be read. Give a FAISS flat file.`, { cause });
  }
  const bytes = header.subarray(0, got);
  const isFloat16 = String.fromCharCode(...header.subarray(0, 4)) === 'IxSQ';
  const { rows, dimension, metric } = isFloat16 ? decodeFp16Header(bytes, path) : decodeFlatHeader(bytes, path);
  const expected = isFloat16 ? fp16FileBytes(rows, dimension) : flatFileBytes(rows, dimension);
  if (fileBytes !== expected) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: has ${fileBytes} bytes, but its header says ${expected}. Copy or build it again.`,
    );
  }
  if (metric !== 'inner-product') {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: is an L2 index. The benchmark needs an inner-product index (IxFI, IxSQ).`,
    );
  }
  const offset = isFloat16 ? FAISS_FP16_HEADER_BYTES : FAISS_HEADER_BYTES;
  const dtype = isFloat16 ? 'float16' : 'float32';
  return { rows, dimension, dtype, segment: { path, offset, bytes: fileBytes - offset, dtype } };
}

export function vectorFileBytes(rows: number, dimension: number, dtype: VectorDtype): number {
  return dtype === 'float16' ? fp16FileBytes(rows, dimension) : flatFileBytes(rows, dimension);
}
