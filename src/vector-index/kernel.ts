import { createRequire } from 'node:module';
import { join } from 'node:path';
import { throwIfCancelled } from '../abort.ts';
import { type ErrorCode, TrawlError } from '../errors.ts';
import type { Metric } from '../metric.ts';
import { environmentVariable } from '../options/resolve-options.ts';
import { packageRoot } from '../package-root.ts';
import type { VectorDtype, VectorSegment } from './vector-segments.ts';

/** Where node-gyp leaves the addon. */
const ADDON_PATH = join(packageRoot, 'native', 'build', 'Release', 'trawl.node');

declare const handleBrand: unique symbol;
/** An object of the native side; only passed back to it. */
export interface NativeIndex {
  readonly [handleBrand]: 'index';
}
export interface NativeCodesWriter {
  readonly [handleBrand]: 'codes writer';
}

/** One instruction set that the engine was compiled for. */
export interface InstructionSet {
  readonly name: string;
  readonly available: boolean;
  /** What was found, or what is missing. */
  readonly reason: string;
}

export interface NativeRows {
  readonly rows: number;
  readonly dtype: VectorDtype;
  readonly segments: readonly VectorSegment[];
}

export interface NativeSearchResult {
  readonly counts: Uint32Array;
  readonly rows: Float64Array;
  readonly scores: Float64Array;
  /** Exact rows read per query. */
  readonly rescored: Float64Array;
  /** Queries for which the certificate was given up and every row was scored. */
  readonly fullScans: number;
}

export interface CheckedRows {
  readonly rowsChecked: number;
  /** −1 when the bounds of every row hold. */
  readonly badRow: number;
  readonly reason: string;
}

export interface MadeScreen {
  /** Directions kept; 0 when no file was made. */
  readonly directions: number;
  /** Why so many, or why none. */
  readonly reason: string;
}

/** The addon as native/addon/addon.cpp exports it. `id` names a call for `cancel`; ids of running calls differ. */
interface Addon {
  isas(): InstructionSet[];
  selectIsa(name: string): string;
  setThreads(threads: number): number;
  openIndex(spec: {
    metric: Metric;
    dimension: number;
    shards: readonly (NativeRows & { codes?: string | undefined; screen?: string | undefined })[];
  }): NativeIndex;
  indexFacts(index: NativeIndex): { rows: number; residentBytes: number; touchedBytes: number; mappedBytes: number };
  closeIndex(index: NativeIndex): void;
  search(
    id: number,
    index: NativeIndex,
    queries: Float32Array,
    count: number,
    k: number,
    isa: string,
    filter: Uint8Array | undefined,
  ): Promise<NativeSearchResult>;
  cancel(id: number): void;
  createCodes(path: string, metric: Metric, dimension: number): NativeCodesWriter;
  appendCodes(id: number, writer: NativeCodesWriter, rows: Float32Array, count: number): Promise<number>;
  finishCodes(id: number, writer: NativeCodesWriter): Promise<number>;
  closeCodes(writer: NativeCodesWriter): void;
  verifyCodes(id: number, path: string, rows: NativeRows, dimension: number): Promise<CheckedRows>;
  makeScreen(
    id: number,
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    directions: number,
  ): Promise<MadeScreen>;
  verifyScreen(id: number, path: string, codesPath: string, rows: NativeRows, dimension: number): Promise<CheckedRows>;
  firstNotHalf(values: Float32Array): number;
  toHalves(values: Float32Array): Uint16Array;
}

/** The native engine, loaded; the one place that calls the addon. */
export class Kernel {
  /** The instruction set in use: the fastest the machine has, or the one TRAWL_ISA names. */
  readonly isa: string;
  readonly #addon: Addon;
  #nextId = 0;

  /** @throws TrawlError CONFIG_INVALID when TRAWL_ISA names one that this machine does not have. */
  constructor(addon: Addon) {
    this.#addon = addon;
    this.isa = translate(() => addon.selectIsa(environmentVariable('TRAWL_ISA') ?? ''));
  }

  get instructionSets(): readonly InstructionSet[] {
    return this.#addon.isas();
  }

  /** Threads of the engine, shared by all indexes of the process; 0 takes one a core. Returns their number. */
  setThreads(threads: number): number {
    return this.#addon.setThreads(threads);
  }

  openIndex(spec: Parameters<Addon['openIndex']>[0]): NativeIndex {
    return translate(() => this.#addon.openIndex(spec));
  }

  /**
   * `residentBytes`: what wants to stay in memory: screens, codes where there is none. `touchedBytes`: codes behind a screen,
   * about one row in a thousand is read. `mappedBytes`: exact rows, read a few dozen at a time.
   */
  indexFacts(index: NativeIndex): ReturnType<Addon['indexFacts']> {
    return this.#addon.indexFacts(index);
  }

  /** Running searches keep what they need until they end. */
  closeIndex(index: NativeIndex): void {
    this.#addon.closeIndex(index);
  }

  search(
    index: NativeIndex,
    request: { queries: Float32Array; count: number; k: number; filter: Uint8Array | undefined },
    signal: AbortSignal | undefined,
  ): Promise<NativeSearchResult> {
    const { queries, count, k, filter } = request;
    return this.#call(signal, (id) => this.#addon.search(id, index, queries, count, k, this.isa, filter));
  }

  createCodes(path: string, metric: Metric, dimension: number): NativeCodesWriter {
    return translate(() => this.#addon.createCodes(path, metric, dimension));
  }

  /** One call at a time per writer. Rows are row-major. Resolves to the rows so far. */
  appendCodes(writer: NativeCodesWriter, rows: Float32Array, count: number): Promise<number> {
    return this.#call(undefined, (id) => this.#addon.appendCodes(id, writer, rows, count));
  }

  finishCodes(writer: NativeCodesWriter): Promise<number> {
    return this.#call(undefined, (id) => this.#addon.finishCodes(id, writer));
  }

  closeCodes(writer: NativeCodesWriter): void {
    this.#addon.closeCodes(writer);
  }

  /** Derives the bounds of every row again. `badRow` is −1 when all hold. */
  verifyCodes(path: string, rows: NativeRows, dimension: number, signal?: AbortSignal): Promise<CheckedRows> {
    return this.#call(signal, (id) => this.#addon.verifyCodes(id, path, rows, dimension));
  }

  /**
   * Makes the screen of finished codes at `path`: of so many directions (a multiple of 64), or, for 0, where it pays. Nothing
   * stays at `path` when it fails.
   */
  makeScreen(
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    { directions = 0, signal }: { directions?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<MadeScreen> {
    return this.#call(signal, (id) => this.#addon.makeScreen(id, path, codesPath, rows, dimension, directions));
  }

  /** As verifyCodes, for the screen made with those codes. */
  verifyScreen(
    path: string,
    codesPath: string,
    rows: NativeRows,
    dimension: number,
    signal?: AbortSignal,
  ): Promise<CheckedRows> {
    return this.#call(signal, (id) => this.#addon.verifyScreen(id, path, codesPath, rows, dimension));
  }

  /** Index of the first value that float16 does not hold exactly, or the length when it holds all. */
  firstNotHalf(values: Float32Array): number {
    return this.#addon.firstNotHalf(values);
  }

  toHalves(values: Float32Array): Uint16Array {
    return this.#addon.toHalves(values);
  }

  async #call<T>(signal: AbortSignal | undefined, start: (id: number) => Promise<T>): Promise<T> {
    throwIfCancelled(signal);
    const id = this.#nextId++;
    const onAbort = (): void => this.#addon.cancel(id);
    signal?.addEventListener('abort', onAbort);
    try {
      return await start(id);
    } catch (error) {
      throw translated(error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

export type LoadedKernel =
  | { readonly ok: true; readonly kernel: Kernel }
  /** `reason` says why the native engine cannot be used. */
  | { readonly ok: false; readonly reason: string };

let loaded: LoadedKernel | undefined;

/**
 * The native engine, or why there is none: a machine without a compiler works on with the reference search.
 *
 * @throws TrawlError CONFIG_INVALID when TRAWL_ISA names an instruction set that this machine does not have.
 */
export function loadKernel(): LoadedKernel {
  loaded ??= load();
  return loaded;
}

function load(): LoadedKernel {
  let addon: Addon;
  try {
    addon = createRequire(import.meta.url)(ADDON_PATH) as Addon;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    return { ok: false, reason };
  }
  return { ok: true, kernel: new Kernel(addon) };
}

/** The core's codes in the project's error family. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  BAD_FILE: 'INDEX_FILE_FOREIGN',
  IO: 'INDEX_FILE_MISSING',
  NOT_FINITE: 'NON_FINITE_VECTOR',
  SCORE_OVERFLOW: 'SCORE_OVERFLOW',
  ISA_UNAVAILABLE: 'CONFIG_INVALID',
  CANCELLED: 'CANCELLED',
  OUT_OF_MEMORY: 'OUT_OF_MEMORY',
};

function translate<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw translated(error);
  }
}

function translated(error: unknown): unknown {
  const { code, message, item, column } = error as { code?: string; message?: string; item?: number; column?: number };
  const known = code === undefined ? undefined : CODES[code];
  if (known === undefined) return error;
  if (code === 'IO' && /no space left/i.test(message ?? '')) {
    return new TrawlError('DISK_FULL', `${message} Free space and run it again.`, { cause: error });
  }
  if (code === 'IO' && /: cannot (create|write|sync|truncate): /.test(message ?? '')) {
    return new TrawlError('OUTPUT_NOT_WRITABLE', `${message}.`, { cause: error });
  }
  const details = { ...(item === -1 ? {} : { item }), ...(column === -1 ? {} : { column }) };
  return new TrawlError(known, message ?? '', { details, cause: error });
}
