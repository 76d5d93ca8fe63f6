import { TrawlError } from '../../base/errors.ts';
import type { FaissFlatHeader } from './faiss-format.ts';

/**
 * The header of a FAISS scalar-quantiser index with float16 codes (`IxSQ`, `QT_fp16`), as faiss writes it, little-endian.
 * If float16 can represent every value, the file has the same rows as a flat file in half the size. `faiss.read_index` can
 * open it.
 *
 * | offset | bytes | field |
 * | --- | --- | --- |
 * | 0 | 37 | as in a flat file, with fourcc `IxSQ` |
 * | 37 | 4 | quantiser type, int32: 4 is float16 |
 * | 41 | 8 | range statistic and its argument, unused here |
 * | 49 | 8 | dimension, uint64 |
 * | 57 | 8 | bytes per row, uint64 |
 * | 65 | 8 | number of trained values, uint64: 0 |
 * | 73 | 8 | number of bytes that follow, uint64 |
 * | 81 | … | the rows, float16, row-major |
 */
export const FAISS_FP16_HEADER_BYTES = 81;

const FOURCC = 'IxSQ';
const QT_FP16 = 4;
const METRIC_TYPE = { 'inner-product': 0, l2: 1 } as const;
const UNUSED_FIELD = 1n << 20n;

export function fp16FileBytes(rows: number, dimension: number): number {
  return FAISS_FP16_HEADER_BYTES + rows * dimension * 2;
}

export function encodeFp16Header({ dimension, rows, metric }: FaissFlatHeader): Uint8Array {
  const bytes = new Uint8Array(FAISS_FP16_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(FOURCC), 0);
  view.setInt32(4, dimension, true);
  view.setBigInt64(8, BigInt(rows), true);
  view.setBigInt64(16, UNUSED_FIELD, true);
  view.setBigInt64(24, UNUSED_FIELD, true);
  view.setUint8(32, 1);
  view.setInt32(33, METRIC_TYPE[metric], true);
  view.setInt32(37, QT_FP16, true);
  view.setBigUint64(49, BigInt(dimension), true);
  view.setBigUint64(57, BigInt(dimension) * 2n, true);
  view.setBigUint64(73, BigInt(rows) * BigInt(dimension) * 2n, true);
  return bytes;
}

/**
 * Reads and checks a header. `file` is only for messages.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN if this is not a float16 scalar-quantiser file, INDEX_FILE_TRUNCATED if it is too short.
 */
export function decodeFp16Header(bytes: Uint8Array, file: string): FaissFlatHeader {
  if (bytes.length < FAISS_FP16_HEADER_BYTES) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${file}: has ${bytes.length} bytes; the header of a FAISS float16 index has ${FAISS_FP16_HEADER_BYTES}.`,
    );
  }
  const foreign = (reason: string): TrawlError =>
    new TrawlError('INDEX_FILE_FOREIGN', `${file}: is not a FAISS float16 scalar-quantiser file: ${reason}.`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fourcc = String.fromCharCode(...bytes.subarray(0, 4));
  if (fourcc !== FOURCC) throw foreign(`it begins with ${JSON.stringify(fourcc)}`);
  const dimension = view.getInt32(4, true);
  const rows = view.getBigInt64(8, true);
  const metricType = view.getInt32(33, true);
  const type = view.getInt32(37, true);
  if (dimension < 1) throw foreign(`dimension ${dimension}`);
  if (rows < 0n || rows > BigInt(Number.MAX_SAFE_INTEGER)) throw foreign(`${rows} rows`);
  if (type !== QT_FP16) throw foreign(`quantiser type ${type} instead of ${QT_FP16} (float16)`);
  if (metricType !== 0 && metricType !== 1) throw foreign(`metric type ${metricType}`);
  const rowBytes = BigInt(dimension) * 2n;
  if (view.getBigUint64(49, true) !== BigInt(dimension) || view.getBigUint64(57, true) !== rowBytes) {
    throw foreign('its quantiser has another dimension than the index');
  }
  if (view.getBigUint64(65, true) !== 0n) throw foreign('its quantiser has trained values');
  if (view.getBigUint64(73, true) !== rows * rowBytes)
    throw foreign(`its size does not match ${rows} rows of ${dimension}`);
  return { dimension, rows: Number(rows), metric: metricType === 0 ? 'inner-product' : 'l2' };
}
