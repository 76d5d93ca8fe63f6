import type { Metric } from '../metric.ts';
import type { Kernel } from '../native/kernel.ts';
import type { NativeCodesWriter } from '../native/search-functions.ts';

/**
 * Writes the codes of rows in one pass. Centres the rows at the mean of the first block. The bytes depend only on rows and
 * metric, not on threads, instruction set or the sizes of the calls.
 */
export class CodesWriter {
  readonly #kernel: Kernel;
  readonly #writer: NativeCodesWriter;
  readonly #dimension: number;
  #closed = false;

  /** @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE. */
  constructor(path: string, shape: { metric: Metric; dimension: number }, kernel: Kernel) {
    this.#kernel = kernel;
    this.#dimension = shape.dimension;
    this.#writer = kernel.createCodes(path, shape.metric, shape.dimension);
  }

  /**
   * @param rows row-major, any number of rows. Await each call before the next.
   * @throws TrawlError NON_FINITE_VECTOR, DISK_FULL or OUTPUT_NOT_WRITABLE.
   */
  async append(rows: Float32Array): Promise<void> {
    await this.#kernel.appendCodes(this.#writer, rows, rows.length / this.#dimension);
  }

  /** Completes the file and syncs it to the disk. */
  async finish(): Promise<void> {
    await this.#kernel.finishCodes(this.#writer);
    this.abandon();
  }

  /** Closes an unfinished file after an error. May be called twice, and after `finish`. */
  abandon(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#kernel.closeCodes(this.#writer);
  }
}
