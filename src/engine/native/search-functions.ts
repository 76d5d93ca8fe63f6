import { environmentVariable } from '../../base/options/environment.ts';
import type { Metric } from '../metric.ts';
import type { CertificateCost, SearchGpu, SearchResult, VectorIndex } from '../vectors/vector-index.ts';
import { call, type InstructionSet, job } from './native-function.ts';

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
  readonly segments: readonly {
    readonly path: string;
    readonly offset: number;
    readonly bytes: number;
    /** Present if the file belongs to others than the index. */
    readonly adopted?: object | undefined;
  }[];
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
  readonly liveRows?: Uint8Array | undefined;
}

export interface NativeSearchRequest {
  /** Row-major, `count` × dimension of the index. */
  readonly queries: Float32Array;
  readonly count: number;
  readonly k: number;
  /** An instruction set; '': the fastest for the number of queries. */
  readonly isa: string;
  /** Bitmap of the rows that may be returned, as in RowBitmap. Deleted rows are never returned. */
  readonly filter?: Uint8Array | undefined;
}

/** Each query has min(k, rows of the index) places. */
export interface NativeSearchResult extends Pick<SearchResult, 'counts' | 'rows' | 'scores'>, CertificateCost {
  /** The GPU's error after which searches of the index run on the CPU; empty if there was none. */
  readonly gpuFailure: string;
  /** For each query a row whose score does not fit float32, or −1. A query with such a row has no hits. Absent: all scores fit. */
  readonly overflows?: Float64Array;
}

/** Peak rates of the machine, per second; 0 for a rate that is not measured on this processor. */
export interface NativePeaks {
  readonly readBytesPerS: number;
  readonly int8ProductsPerS: number;
  readonly float32ProductsPerS: number;
  /** The instruction set of `int8ProductsPerS`; empty if it was not measured. Tiles of AMX never are. */
  readonly int8Isa: string;
}

export interface NativeIndexFacts extends Pick<VectorIndex, 'rows' | 'residentBytes' | 'touchedBytes' | 'mappedBytes'> {
  /** Number of shards whose codes have no identity of all rows: their prefilters were compared with a sample of the codes only. */
  readonly sampledPrefilters: number;
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

/** From `codesFrom` queries on, the instruction set `many` scans the codes, else `few`; `prefiltersFrom` likewise. −1: always `few`. */
export interface ChosenIsas {
  readonly few: string;
  readonly many: string;
  readonly codesFrom: number;
  readonly prefiltersFrom: number;
}

/** A file that another library reads, perhaps mapped. */
export interface NativeWatch {
  readonly [handleBrand]: 'watched file';
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

/** The addon's functions for vectors and for the whole engine. */
export const SEARCH_FUNCTIONS = {
  /** Instruction sets of searches, fastest first. */
  isas: call<() => InstructionSet[]>(),
  /** Checks that this machine has an instruction set. Returns its name; for '', the fastest. */
  selectIsa: call<(name: string) => string>(),
  /** The instruction sets of searches by their number of queries; with '' and AMX the first call tries both, about 50 ms. */
  chosenIsas: call<(name: string) => ChosenIsas>(),
  /** Number of search threads, shared by all indexes of the process; 0 before `setThreads`. They start on first use. */
  threads: call<() => number>(),
  /** An integer from 1 to 4096, else a TypeError. */
  setThreads: call<(threads: number) => number>(),
  /**
   * Peak rates of this machine, with the engine's threads. Takes about half a second, and `bytes` of memory meanwhile, from 1 MiB to
   * 16 GiB; they should be several times the last cache. Throws OUT_OF_MEMORY.
   */
  measurePeaks: job<(bytes: number) => NativePeaks>(),
  /** Rejects the promise of the job with that id with CANCELLED soon. */
  cancel: call<(id: number) => void>(),
  /** Maps the files. Throws INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file. */
  openIndex: job<(spec: NativeIndexSpec) => NativeIndex>(),
  indexFacts: call<(index: NativeIndex) => NativeIndexFacts>(),
  /** Running searches keep the index until they end. */
  closeIndex: call<(index: NativeIndex) => void>(),
  /** The GPUs of this machine. Takes a moment for each. `library`: see `cudaLibrary`. Throws DEVICE_UNAVAILABLE without a driver. */
  gpus: call<(library: string) => NativeGpus>(),
  /**
   * Copies the codes of an index to an NVIDIA GPU, for all later searches, which have the same answers. Once, before the first search.
   * Throws DEVICE_UNAVAILABLE without a driver, that GPU, or enough of its memory.
   */
  uploadIndex: job<(index: NativeIndex, device: number, library: string) => Omit<SearchGpu, 'failed'>>(),
  /** Throws FILE_CHANGED if a file is not what it was when it was opened; so does every function that reads mapped files. */
  search: job<(index: NativeIndex, request: NativeSearchRequest) => NativeSearchResult>(),
  /** Throws DISK_FULL or OUTPUT_NOT_WRITABLE. */
  createCodes: call<(path: string, metric: Metric, dimension: number) => NativeCodesWriter>(),
  /** One call at a time per writer. `rows`: row-major, `count` × dimension. Resolves to the total number of rows appended. */
  appendCodes: job<(writer: NativeCodesWriter, rows: Float32Array, count: number) => number>(),
  finishCodes: job<(writer: NativeCodesWriter) => number>(),
  closeCodes: call<(writer: NativeCodesWriter) => void>(),
  /**
   * Makes the prefilter of finished codes at `path`, with `components` principal components (a multiple of 64). With 0, chooses
   * the number that makes searches fastest; with none, no file is written. An error leaves no file.
   */
  makePrefilter:
    job<(path: string, codesPath: string, rows: NativeRows, dimension: number, components: number) => MadePrefilter>(),
  /** Computes the bounds of every row again and compares them with the stored ones. */
  verifyCodes: job<(path: string, rows: NativeRows, dimension: number) => CheckedRows>(),
  /** As verifyCodes, for the prefilter of these codes. */
  verifyPrefilter: job<(path: string, codesPath: string, rows: NativeRows, dimension: number) => CheckedRows>(),
  /**
   * Watches a file that another library has opened. On Linux a page of its mappings that cannot be read does not end the process: call this
   * once the mappings exist, and `requireUnchanged` after they were read.
   */
  watchFile: call<(path: string) => NativeWatch>(),
  /** Throws FILE_CHANGED if the file is not what it was when it was watched first. */
  requireUnchanged: call<(watch: NativeWatch) => void>(),
  closeWatch: call<(watch: NativeWatch) => void>(),
  /** Index of the first value that float16 cannot represent exactly, or the length if there is none. */
  firstNotHalf: call<(values: Float32Array) => number>(),
  /** Converts to float16. Throws a TypeError for a value that float16 cannot represent exactly. */
  toHalves: call<(values: Float32Array) => Uint16Array>(),
};

/** Path of the driver's library; '' uses the system's. */
export function cudaLibrary(): string {
  return environmentVariable('TRAWL_CUDA_LIBRARY') ?? '';
}
