import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../metric.ts';

/**
 * The header of a FAISS flat index file, as faiss writes it (`write_index_header` and the flat index's vector in
 * faiss/impl/index_write.cpp), little-endian:
 *
 * | offset | bytes | field |
 * | --- | --- | --- |
 * | 0 | 4 | fourcc: `IxFI` inner product, `IxF2` squared L2 |
 * | 4 | 4 | dimension, int32 |
 * | 8 | 8 | rows, int64 |
 * | 16 | 16 | two unused int64, written as 2^20 |
 * | 32 | 1 | trained flag |
 * | 33 | 4 | metric type, int32: 0 inner product, 1 squared L2 |
 * | 37 | 8 | number of float32 that follow, uint64 = rows × dimension |
 * | 45 | … | the rows, float32, row-major |
 *
 * The floats begin at offset 45, so they are not aligned to 4 bytes.
 */
export const FAISS_HEADER_BYTES = 45;

const FOURCC = { 'inner-product': 'IxFI', l2: 'IxF2' } as const;
const METRIC_TYPE = { 'inner-product': 0, l2: 1 } as const;
const UNUSED_FIELD = 1n << 20n;

/** Other FAISS index types, for error messages. */
const OTHER_TYPES: Readonly<Record<string, string>> = {
  IxFl: 'a flat index of another metric',
  IHNf: 'an HNSW index',
  IwFl: 'an IVF flat index',
  IwPQ: 'an IVF-PQ index',
  IwSq: 'an IVF scalar-quantiser index',
  IxSQ: 'a scalar-quantiser index',
  IxPq: 'a PQ index',
  IxMp: 'an ID-map index',
  IxM2: 'an ID-map index',
};

export interface FaissFlatHeader {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: 'inner-product' | 'l2';
}

/** The metric in the header of a flat file. For cosine, rows are stored unchanged in an inner-product file. */
export function faissMetric(metric: Metric): 'inner-product' | 'l2' {
  return metric === 'l2' ? 'l2' : 'inner-product';
}

export function flatFileBytes(rows: number, dimension: number): number {
  return FAISS_HEADER_BYTES + rows * dimension * 4;
}

export function encodeFlatHeader({ dimension, rows, metric }: FaissFlatHeader): Uint8Array {
  const bytes = new Uint8Array(FAISS_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(FOURCC[metric]), 0);
  view.setInt32(4, dimension, true);
  view.setBigInt64(8, BigInt(rows), true);
  view.setBigInt64(16, UNUSED_FIELD, true);
  view.setBigInt64(24, UNUSED_FIELD, true);
  view.setUint8(32, 1);
  view.setInt32(33, METRIC_TYPE[metric], true);
  view.setBigUint64(37, BigInt(rows) * BigInt(dimension), true);
  return bytes;
}

/**
 * Reads and checks a header. `file` is only for messages. `fileBytes`, if given, is compared with the size from the header.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN if this is not a FAISS flat file, INDEX_FILE_TRUNCATED if it has another size.
 */
export function decodeFlatHeader(bytes: Uint8Array, file: string, fileBytes?: number): FaissFlatHeader {
  if (bytes.length < FAISS_HEADER_BYTES) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${file}: has ${bytes.length} bytes; the header of a FAISS flat index has ${FAISS_HEADER_BYTES}.`,
    );
  }
  const fourcc = String.fromCharCode(...bytes.subarray(0, 4));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const metric = fourcc === FOURCC['inner-product'] ? 'inner-product' : fourcc === FOURCC.l2 ? 'l2' : undefined;
  if (metric === undefined) {
    const type = OTHER_TYPES[fourcc];
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      type === undefined
        ? `${file}: begins with ${JSON.stringify(fourcc)}; a FAISS flat index begins with IxFI or IxF2.`
        : `${file}: is a FAISS file with ${type} (${fourcc}). Convert it to a flat index with inner product or L2 (IxFI or IxF2).`,
    );
  }
  const dimension = view.getInt32(4, true);
  const rows = view.getBigInt64(8, true);
  const trained = view.getUint8(32);
  const metricType = view.getInt32(33, true);
  const floats = view.getBigUint64(37, true);
  const foreign = (reason: string): TrawlError =>
    new TrawlError('INDEX_FILE_FOREIGN', `${file}: the FAISS flat header is not consistent: ${reason}.`);
  if (dimension < 1) throw foreign(`dimension ${dimension}`);
  if (rows < 0n || rows > BigInt(Number.MAX_SAFE_INTEGER)) throw foreign(`${rows} rows`);
  if (trained > 1) throw foreign(`trained flag ${trained}`);
  if (metricType !== METRIC_TYPE[metric]) throw foreign(`metric type ${metricType} in an ${fourcc} file`);
  // BigInt, because the product can exceed 2^53.
  if (floats !== rows * BigInt(dimension)) {
    throw foreign(`${floats} floats for ${rows} rows of ${dimension} dimensions`);
  }
  const expected = BigInt(FAISS_HEADER_BYTES) + rows * BigInt(dimension) * 4n;
  if (fileBytes !== undefined && BigInt(fileBytes) !== expected) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${file}: has ${fileBytes} bytes, but its header says ${rows} rows of ${dimension} float32, which need ${expected} bytes. ` +
        'Copy or build it again.',
    );
  }
  return { dimension, rows: Number(rows), metric };
}
