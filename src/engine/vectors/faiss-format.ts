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

const FOURCC = { 'inner-product': 'IxFI', l2: 'IxF2' } as const;
const FP16_FOURCC = 'IxSQ';
const QT_FP16 = 4;
const METRICS = ['inner-product', 'l2'] as const;
const UNUSED_FIELD = 1n << 20n;

/** The kinds of FAISS's files other than flat ones, by their first bytes, and whether they have the rows that were added, bit for bit. */
const OTHER_KINDS: readonly (readonly [fourcc: RegExp, what: string, isExact: boolean])[] = [
  [/^IHNf$/, 'an HNSW index over flat rows', true],
  [/^IN[Ss]f$/, 'an NSG index over flat rows', true],
  [/^INNf$/, 'an NN-descent index over flat rows', true],
  [/^IwFl$/, 'an IVF flat index', true],
  [/^IxRF$/, 'a refined index (IndexRefineFlat)', true],
  [/^IxFl$/, 'a flat index of another metric', true],
  [/^I(HN|NS)/, 'a graph index over quantised rows', false],
  [/^Iw(PQ|QR)/, 'an IVF-PQ index', false],
  [/^I(wPf|Pfs)/, 'a PQ index for fast scans', false],
  [/^IwSq$/, 'an IVF index with quantised rows', false],
  [/^Iw/, 'an IVF index', false],
  [/^IxPT$/, 'an index behind a transform of the vectors (PCA, OPQ, L2norm)', false],
  [/^IxP[qQo]$/, 'a PQ index', false],
  [/^IxSQ$/, 'a scalar-quantiser index', false],
  [/^IxM[p2]$/, 'an ID-map index', true],
  [/^IB/, 'an index of binary vectors', false],
];

interface FaissHeader {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: (typeof METRICS)[number];
}

/** What a FAISS file is that is not flat, and whether it has the rows that were added, bit for bit; undefined for other files. */
export function otherFaissKind(fourcc: string): { readonly what: string; readonly isExact: boolean } | undefined {
  const found = OTHER_KINDS.find(([name]) => name.test(fourcc));
  return found && { what: found[1], isExact: found[2] };
}

/** The metric in the header of a flat file. For cosine, rows are stored unchanged in an inner-product file. */
export function faissMetric(metric: Metric): FaissHeader['metric'] {
  return metric === 'l2' ? 'l2' : 'inner-product';
}

export function flatFileBytes(rows: number, dimension: number): number {
  return FAISS_HEADER_BYTES + rows * dimension * 4;
}

export function fp16FileBytes(rows: number, dimension: number): number {
  return FAISS_FP16_HEADER_BYTES + rows * dimension * 2;
}

export function encodeFlatHeader(header: FaissHeader): Uint8Array {
  const bytes = new Uint8Array(FAISS_HEADER_BYTES);
  const view = encodeStart(bytes, FOURCC[header.metric], header);
  view.setBigUint64(37, BigInt(header.rows) * BigInt(header.dimension), true);
  return bytes;
}

export function encodeFp16Header(header: FaissHeader): Uint8Array {
  const bytes = new Uint8Array(FAISS_FP16_HEADER_BYTES);
  const view = encodeStart(bytes, FP16_FOURCC, header);
  const dimension = BigInt(header.dimension);
  view.setInt32(37, QT_FP16, true);
  view.setBigUint64(49, dimension, true);
  view.setBigUint64(57, dimension * 2n, true);
  view.setBigUint64(73, BigInt(header.rows) * dimension * 2n, true);
  return bytes;
}

/** Writes the fields that both headers begin with. */
function encodeStart(bytes: Uint8Array, fourcc: string, { dimension, rows, metric }: FaissHeader): DataView {
  const view = new DataView(bytes.buffer);
  bytes.set(Buffer.from(fourcc, 'latin1'), 0);
  view.setInt32(4, dimension, true);
  view.setBigInt64(8, BigInt(rows), true);
  view.setBigInt64(16, UNUSED_FIELD, true);
  view.setBigInt64(24, UNUSED_FIELD, true);
  view.setUint8(32, 1);
  view.setInt32(33, METRICS.indexOf(metric), true);
  return view;
}

/**
 * Reads and checks a header. `file` is only for messages.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN if this is not a FAISS flat file, INDEX_FILE_TRUNCATED if it is too short.
 */
export function decodeFlatHeader(bytes: Uint8Array, file: string): FaissHeader {
  checkLength(bytes, FAISS_HEADER_BYTES, `${file}: has ${bytes.length} bytes; the header of a FAISS flat index`);
  const fourcc = fourccOf(bytes);
  const metric = METRICS.find((known) => FOURCC[known] === fourcc);
  if (metric === undefined) {
    const kind = otherFaissKind(fourcc);
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      kind === undefined
        ? `${file}: begins with ${JSON.stringify(fourcc)}; a FAISS flat index begins with IxFI or IxF2.`
        : `${file}: is a FAISS file with ${kind.what} (${fourcc}). Convert it to a flat index with inner product or L2 (IxFI or IxF2).`,
    );
  }
  const foreign = (reason: string): TrawlError =>
    new TrawlError('INDEX_FILE_FOREIGN', `${file}: the FAISS flat header is not consistent: ${reason}.`);
  const { view, dimension, rows, metricType } = decodeStart(bytes, foreign);
  const floats = view.getBigUint64(37, true);
  if (view.getUint8(32) > 1) throw foreign(`trained flag ${view.getUint8(32)}`);
  if (METRICS[metricType] !== metric) throw foreign(`metric type ${metricType} in an ${fourcc} file`);
  // BigInt, because the product can exceed 2^53.
  if (floats !== rows * BigInt(dimension)) {
    throw foreign(`${floats} floats for ${rows} rows of ${dimension} dimensions`);
  }
  return { dimension, rows: Number(rows), metric };
}

/** As `decodeFlatHeader`, for a float16 scalar-quantiser file. */
export function decodeFp16Header(bytes: Uint8Array, file: string): FaissHeader {
  checkLength(
    bytes,
    FAISS_FP16_HEADER_BYTES,
    `${file}: has ${bytes.length} bytes; the header of a FAISS float16 index`,
  );
  const foreign = (reason: string): TrawlError =>
    new TrawlError('INDEX_FILE_FOREIGN', `${file}: is not a FAISS float16 scalar-quantiser file: ${reason}.`);
  if (fourccOf(bytes) !== FP16_FOURCC) throw foreign(`it begins with ${JSON.stringify(fourccOf(bytes))}`);
  const { view, dimension, rows, metricType } = decodeStart(bytes, foreign);
  const type = view.getInt32(37, true);
  const metric = METRICS[metricType];
  if (type !== QT_FP16) throw foreign(`quantiser type ${type} instead of ${QT_FP16} (float16)`);
  if (metric === undefined) throw foreign(`metric type ${metricType}`);
  const rowBytes = BigInt(dimension) * 2n;
  if (view.getBigUint64(49, true) !== BigInt(dimension) || view.getBigUint64(57, true) !== rowBytes) {
    throw foreign('its quantiser has another dimension than the index');
  }
  if (view.getBigUint64(65, true) !== 0n) throw foreign('its quantiser has trained values');
  if (view.getBigUint64(73, true) !== rows * rowBytes) {
    throw foreign(`its size does not match ${rows} rows of ${dimension}`);
  }
  return { dimension, rows: Number(rows), metric };
}

function checkLength(bytes: Uint8Array, headerBytes: number, message: string): void {
  if (bytes.length < headerBytes) throw new TrawlError('INDEX_FILE_TRUNCATED', `${message} has ${headerBytes}.`);
}

function fourccOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 4));
}

/** Reads the fields that both headers begin with. */
function decodeStart(bytes: Uint8Array, foreign: (reason: string) => TrawlError) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const dimension = view.getInt32(4, true);
  const rows = view.getBigInt64(8, true);
  if (dimension < 1) throw foreign(`dimension ${dimension}`);
  if (rows < 0n || rows > BigInt(Number.MAX_SAFE_INTEGER)) throw foreign(`${rows} rows`);
  return { view, dimension, rows, metricType: view.getInt32(33, true) };
}
