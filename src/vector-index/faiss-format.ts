import { TrawlError } from '../errors.ts';
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
 * The floats begin at offset 45: they are not aligned to 4 bytes.
 */
export const FAISS_HEADER_BYTES = 45;

const FOURCC = { 'inner-product': 'IxFI', l2: 'IxF2' } as const;
const METRIC_TYPE = { 'inner-product': 0, l2: 1 } as const;
const UNUSED_FIELD = 1n << 20n;

/** Other index kinds a user may hand over, so that the refusal can say what the file is. */
const OTHER_KINDS: Readonly<Record<string, string>> = {
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

/** The flat metric a metric is stored as: cosine keeps rows as they came, in an inner-product file. */
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
 * Reads and checks a header. `file` is only for messages; `fileBytes`, where known, is compared with what the header
 * says the file must have.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN when this is no FAISS flat file, INDEX_FILE_TRUNCATED when it is too short.
 */
export function decodeFlatHeader(bytes: Uint8Array, file: string, fileBytes?: number): FaissFlatHeader {
  if (bytes.length < FAISS_HEADER_BYTES) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${file}: ${bytes.length} bytes, less than the ${FAISS_HEADER_BYTES} bytes of a FAISS flat header.`,
    );
  }
  const fourcc = String.fromCharCode(...bytes.subarray(0, 4));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const metric = fourcc === FOURCC['inner-product'] ? 'inner-product' : fourcc === FOURCC.l2 ? 'l2' : undefined;
  if (metric === undefined) {
    const kind = OTHER_KINDS[fourcc];
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      kind === undefined
        ? `${file}: begins with ${JSON.stringify(fourcc)}, not with a FAISS flat index (IxFI or IxF2).`
        : `${file}: is ${kind} of FAISS (${fourcc}). A flat index is needed, with the exact rows in order and inner product or L2 (IxFI or IxF2).`,
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
  // Compared without wrapping at 2^64, as a 64-bit multiplication would.
  if (floats !== rows * BigInt(dimension)) {
    throw foreign(`${floats} floats for ${rows} rows of ${dimension} dimensions`);
  }
  const expected = BigInt(FAISS_HEADER_BYTES) + rows * BigInt(dimension) * 4n;
  if (fileBytes !== undefined && BigInt(fileBytes) !== expected) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${file}: ${fileBytes} bytes, but its header says ${rows} rows of ${dimension} float32, which is ${expected} bytes. ` +
        'Copy or build it again.',
    );
  }
  return { dimension, rows: Number(rows), metric };
}
