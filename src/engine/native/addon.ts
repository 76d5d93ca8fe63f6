import type { Metric } from '../metric.ts';
import type { ColumnFunctions } from './column-functions.ts';
import type { EncoderFunctions } from './encoder-functions.ts';
import type { InstructionSet } from './instruction-set.ts';
import type { LexicalFunctions } from './lexical-functions.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeIndex {
  readonly [handleBrand]: 'index';
}
export interface NativeCodesWriter {
  readonly [handleBrand]: 'codes writer';
}

export interface NativeRows {
  readonly rows: number;
  readonly dtype: 'float32' | 'float16';
  /** Byte ranges whose concatenation is the matrix of rows, row-major. A row may continue in the next range. */
  readonly segments: readonly { readonly path: string; readonly offset: number; readonly bytes: number }[];
}

interface NativeShard extends NativeRows {
  readonly codes?: string | undefined;
  readonly prefilter?: string | undefined;
}

export interface NativeIndexSpec {
  readonly metric: Metric;
  readonly dimension: number;
  readonly shards: readonly NativeShard[];
  /** Bitmap of the live rows, as in RowBitmap; copied once. Absent: all rows. */
  readonly liveRows?: Uint8Array;
}

export interface NativeSearchResult {
  readonly counts: Uint32Array;
  readonly rows: Float64Array;
  readonly scores: Float64Array;
  /** Exact rows read per query. */
  readonly rescored: Float64Array;
  /** Queries without a certificate, for which every row was scored. */
  readonly fullScans: number;
  /** The GPU's error after which searches of the index run on the CPU; empty if there was none. */
  readonly gpuFailure: string;
}

/** Peak rates of the machine, per second; 0 for a rate that is not measured on this processor. */
export interface NativePeaks {
  readonly readBytesPerS: number;
  readonly int8ProductsPerS: number;
  readonly float32ProductsPerS: number;
  /** The instruction set of `int8ProductsPerS`; empty if it was not measured. Tiles of AMX never are. */
  readonly int8Isa: string;
}

/** Sizes of an index's files, grouped by how searches read them. */
export interface NativeIndexFacts {
  readonly rows: number;
  /** Prefilters, and codes of shards without one: every search reads all of them, so they should be in memory. */
  readonly residentBytes: number;
  /** Codes behind a prefilter: a search reads about one row in a thousand. */
  readonly touchedBytes: number;
  /** Exact rows: a search reads a few dozen. */
  readonly mappedBytes: number;
}

/** The GPU that has the codes of an index. */
export interface NativeGpu {
  readonly name: string;
  /** The driver's version of CUDA, such as 13.0. */
  readonly cuda: string;
  /** Bytes of its memory that the index takes. */
  readonly bytes: number;
}

/** The GPUs of this machine, numbered from 0 as `cuda:0`. */
export interface NativeGpus {
  /** The driver's version of CUDA. */
  readonly cuda: string;
  readonly gpus: readonly {
    readonly name: string;
    readonly freeBytes: number;
    readonly totalBytes: number;
    /** Why it cannot be used for searches; empty if it can. */
    readonly problem: string;
  }[];
}

/** The numbers of queries from which on `many` scans codes and prefilters; fewer are scanned by `few`. −1: all are. */
export interface ChosenIsas {
  readonly few: string;
  readonly many: string;
  readonly codesFrom: number;
  readonly prefiltersFrom: number;
}

export interface CheckedRows {
  readonly rowsChecked: number;
  /** −1 if the bounds of every row are valid. */
  readonly badRow: number;
  readonly reason: string;
}

export interface MadePrefilter {
  /** Principal components kept; 0 if no file was made. */
  readonly components: number;
  /** Explains this number, or why no file was written. */
  readonly reason: string;
}

/**
 * The addon's functions (native/addon/entries.hpp). `id` identifies a call for `cancel`; running calls must have different
 * ids. Throws the errors of native-error.ts.
 */
export interface Addon extends LexicalFunctions, ColumnFunctions, EncoderFunctions {
  isas(): InstructionSet[];
  selectIsa(name: string): string;
  /** The instruction sets of searches by their number of queries; with `''` and AMX the first call tries both. */
  chosenIsas(name: string): ChosenIsas;
  threads(): number;
  setThreads(threads: number): number;
  measurePeaks(id: number, bytes: number): Promise<NativePeaks>;
  cancel(id: number): void;
  openIndex(spec: NativeIndexSpec): NativeIndex;
  indexFacts(index: NativeIndex): NativeIndexFacts;
  closeIndex(index: NativeIndex): void;
  gpus(library: string): NativeGpus;
  uploadIndex(id: number, index: NativeIndex, device: number, library: string): Promise<NativeGpu>;
  search(
    id: number,
    index: NativeIndex,
    queries: Float32Array,
    count: number,
    k: number,
    isa: string,
    filter: Uint8Array | undefined,
  ): Promise<NativeSearchResult>;
  createCodes(path: string, metric: Metric, dimension: number): NativeCodesWriter;
  appendCodes(id: number, writer: NativeCodesWriter, rows: Float32Array, count: number): Promise<number>;
  finishCodes(id: number, writer: NativeCodesWriter): Promise<number>;
  closeCodes(writer: NativeCodesWriter): void;
  makePrefilter(
    id: number,
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    components: number,
  ): Promise<MadePrefilter>;
  verifyCodes(id: number, path: string, rows: NativeRows, dimension: number): Promise<CheckedRows>;
  verifyPrefilter(
    id: number,
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
  ): Promise<CheckedRows>;
  firstNotHalf(values: Float32Array): number;
  toHalves(values: Float32Array): Uint16Array;
}

/** Every function of the addon; the compiler refuses a list that lacks one. */
const FUNCTIONS: Readonly<Record<keyof Addon, true>> = {
  isas: true,
  selectIsa: true,
  chosenIsas: true,
  threads: true,
  setThreads: true,
  measurePeaks: true,
  cancel: true,
  openIndex: true,
  indexFacts: true,
  closeIndex: true,
  gpus: true,
  uploadIndex: true,
  search: true,
  createCodes: true,
  appendCodes: true,
  finishCodes: true,
  closeCodes: true,
  makePrefilter: true,
  verifyCodes: true,
  verifyPrefilter: true,
  analyse: true,
  openLexical: true,
  lexicalFacts: true,
  closeLexical: true,
  searchLexical: true,
  searchLexicalFields: true,
  explainLexical: true,
  createLexical: true,
  appendLexical: true,
  finishLexical: true,
  closeLexicalWriter: true,
  verifyLexical: true,
  openColumn: true,
  closeColumn: true,
  filterRows: true,
  encoderIsas: true,
  openBert: true,
  bertFacts: true,
  runBert: true,
  closeBert: true,
  firstNotHalf: true,
  toHalves: true,
};

/** The functions that a loaded module lacks: it was compiled from other sources. */
export function missingFunctions(module: object): readonly string[] {
  const found = module as Readonly<Record<string, unknown>>;
  return Object.keys(FUNCTIONS).filter((name) => typeof found[name] !== 'function');
}
