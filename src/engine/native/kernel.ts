import { environmentVariable } from '../../base/options/resolve-options.ts';
import { availableCores } from '../../base/system/cores.ts';
import type { ColumnType } from '../filter/column.ts';
import type { Metric } from '../metric.ts';
import type {
  Addon,
  CheckedRows,
  ChosenIsas,
  MadePrefilter,
  NativeCodesWriter,
  NativeGpu,
  NativeGpus,
  NativeIndex,
  NativeIndexFacts,
  NativeIndexSpec,
  NativePeaks,
  NativeRows,
  NativeSearchResult,
} from './addon.ts';
import type { NativeColumn, NativeRowTest } from './column-functions.ts';
import { EncoderKernel } from './encoder-kernel.ts';
import type { InstructionSet } from './instruction-set.ts';
import { LexicalKernel } from './lexical-kernel.ts';
import { type AddonOrigin, loadAddon } from './load-addon.ts';
import { NativeCalls, translate } from './native-calls.ts';

export type { CheckedRows, ChosenIsas, NativeRows } from './addon.ts';
export type { InstructionSet } from './instruction-set.ts';

/** The native engine. Wraps the addon and translates its errors to `TrawlError`s. */
export class Kernel {
  /** The instruction set in use: the fastest of the machine, or the one TRAWL_ISA names. */
  readonly isa: string;
  /** The lexical half of the engine. */
  readonly lexical: LexicalKernel;
  /** The forward pass of encoders in bfloat16 and int8. */
  readonly encoder: EncoderKernel;
  readonly origin: AddonOrigin;
  readonly #addon: Addon;
  readonly #calls: NativeCalls;
  /** The instruction set that TRAWL_ISA names; if empty, the engine chooses by the number of queries. */
  readonly #namedIsa: string;

  /** @throws TrawlError CONFIG_INVALID if TRAWL_ISA names an instruction set that this machine does not have. */
  constructor(addon: Addon, origin: AddonOrigin = 'compiled here') {
    this.#addon = addon;
    this.origin = origin;
    this.#calls = new NativeCalls(addon);
    this.lexical = new LexicalKernel(addon, this.#calls);
    const isa = environmentVariable('TRAWL_ISA') ?? '';
    this.#namedIsa = isa;
    this.encoder = new EncoderKernel(addon, isa);
    this.isa = translate(() => addon.selectIsa(isa));
    // In a worker thread, keep the number that the main thread has set.
    if (addon.threads() === 0) addon.setThreads(availableCores());
  }

  /** Of searches, by their number of queries. With AMX the first call tries it, about 50 ms. */
  get chosenIsas(): ChosenIsas {
    return this.#addon.chosenIsas(this.#namedIsa);
  }

  get instructionSets(): readonly InstructionSet[] {
    return this.#addon.isas();
  }

  /** Number of search threads, shared by all indexes of the process. Default: the available cores. They start on first use. */
  get threads(): number {
    return this.#addon.threads();
  }

  /** @param threads an integer from 1 to 4096, else a TypeError. */
  setThreads(threads: number): void {
    this.#addon.setThreads(threads);
  }

  /**
   * Peak rates of this machine, with the engine's threads. Takes about half a second, and `bytes` of memory meanwhile, at least 1 MiB;
   * they should be several times the last cache.
   *
   * @throws TrawlError OUT_OF_MEMORY, CANCELLED.
   */
  measurePeaks(bytes: number, signal?: AbortSignal): Promise<NativePeaks> {
    return this.#calls.run(signal, (id) => this.#addon.measurePeaks(id, bytes));
  }

  /** Maps the files. @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file. */
  openIndex(spec: NativeIndexSpec): NativeIndex {
    return translate(() => this.#addon.openIndex(spec));
  }

  /**
   * Copies the codes of an index to an NVIDIA GPU, for all later searches, which have the same answers. Once, before the first search.
   *
   * @throws TrawlError DEVICE_UNAVAILABLE without a driver, that GPU, or enough of its memory; CANCELLED.
   */
  uploadIndex(index: NativeIndex, device: number, signal?: AbortSignal): Promise<NativeGpu> {
    return this.#calls.run(signal, (id) => this.#addon.uploadIndex(id, index, device, cudaLibrary()));
  }

  /** The GPUs of this machine. Takes a moment for each. @throws TrawlError DEVICE_UNAVAILABLE without a driver. */
  gpus(): NativeGpus {
    return translate(() => this.#addon.gpus(cudaLibrary()));
  }

  indexFacts(index: NativeIndex): NativeIndexFacts {
    return this.#addon.indexFacts(index);
  }

  /** Running searches keep the index until they end. */
  closeIndex(index: NativeIndex): void {
    this.#addon.closeIndex(index);
  }

  /** `filter`: bitmap of the rows that may be returned, as in RowBitmap. Deleted rows are never returned. */
  search(
    index: NativeIndex,
    request: { queries: Float32Array; count: number; k: number; filter: Uint8Array | undefined },
    signal: AbortSignal | undefined,
  ): Promise<NativeSearchResult> {
    const { queries, count, k, filter } = request;
    return this.#calls.run(signal, (id) => this.#addon.search(id, index, queries, count, k, this.#namedIsa, filter));
  }

  /** Maps the files of a column, one for each shard. @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file. */
  openColumn(paths: readonly string[], type: ColumnType): NativeColumn {
    return translate(() => this.#addon.openColumn(paths, type));
  }

  /** Running evaluations keep the column until they end. */
  closeColumn(column: NativeColumn): void {
    this.#addon.closeColumn(column);
  }

  /** The bitmap of the rows that pass, as in RowBitmap. `rows`: the number of rows of the index, and of each column. */
  filterRows(
    columns: readonly NativeColumn[],
    test: NativeRowTest,
    rows: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    return this.#calls.run(signal, (id) => this.#addon.filterRows(id, columns, test, rows));
  }

  /** @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE. */
  createCodes(path: string, metric: Metric, dimension: number): NativeCodesWriter {
    return translate(() => this.#addon.createCodes(path, metric, dimension));
  }

  /** One call at a time per writer. `rows`: row-major, `count` × dimension. Resolves to the total number of rows appended. */
  appendCodes(writer: NativeCodesWriter, rows: Float32Array, count: number): Promise<number> {
    return this.#calls.run(undefined, (id) => this.#addon.appendCodes(id, writer, rows, count));
  }

  finishCodes(writer: NativeCodesWriter): Promise<number> {
    return this.#calls.run(undefined, (id) => this.#addon.finishCodes(id, writer));
  }

  closeCodes(writer: NativeCodesWriter): void {
    this.#addon.closeCodes(writer);
  }

  /** Computes the bounds of every row again and compares them with the stored ones. */
  verifyCodes(path: string, rows: NativeRows, dimension: number, signal?: AbortSignal): Promise<CheckedRows> {
    return this.#calls.run(signal, (id) => this.#addon.verifyCodes(id, path, rows, dimension));
  }

  /**
   * Makes the prefilter of finished codes at `path`, with `components` principal components (a multiple of 64). With 0, chooses
   * the number that makes searches fastest; with none, no file is written. An error leaves no file.
   */
  makePrefilter(
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    { components = 0, signal }: { components?: number; signal?: AbortSignal } = {},
  ): Promise<MadePrefilter> {
    return this.#calls.run(signal, (id) => this.#addon.makePrefilter(id, path, codesPath, rows, dimension, components));
  }

  /** As verifyCodes, for the prefilter of these codes. */
  verifyPrefilter(
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    signal?: AbortSignal,
  ): Promise<CheckedRows> {
    return this.#calls.run(signal, (id) => this.#addon.verifyPrefilter(id, path, codesPath, rows, dimension));
  }

  /** Index of the first value that float16 cannot represent exactly, or the length if there is none. */
  firstNotHalf(values: Float32Array): number {
    return this.#addon.firstNotHalf(values);
  }

  /** Converts to float16. Throws a TypeError for a value that float16 cannot represent exactly. */
  toHalves(values: Float32Array): Uint16Array {
    return this.#addon.toHalves(values);
  }
}

/** Path of libcuda; empty: the system's. */
function cudaLibrary(): string {
  return environmentVariable('TRAWL_CUDA_LIBRARY') ?? '';
}

export type LoadedKernel =
  | { readonly ok: true; readonly kernel: Kernel }
  /** `reason` explains why the native engine cannot be used. */
  | { readonly ok: false; readonly reason: string };

let loaded: LoadedKernel | undefined;

/**
 * Loads the native engine once. If it cannot be used, because no prebuilt binary fits and there was no compiler, searches run in
 * TypeScript.
 *
 * @throws TrawlError CONFIG_INVALID if TRAWL_ISA names an instruction set that this machine does not have.
 */
export function loadKernel(): LoadedKernel {
  loaded ??= load();
  return loaded;
}

function load(): LoadedKernel {
  const loaded = loadAddon();
  return loaded.ok ? { ok: true, kernel: new Kernel(loaded.addon, loaded.origin) } : loaded;
}
