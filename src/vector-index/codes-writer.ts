import type { Metric } from '../metric.ts';
import type { Kernel, NativeCodesWriter } from './kernel.ts';

/**
 * Streams rows to a file of first-pass codes, in one pass: the mean is taken from the first block. The bytes depend on
 * rows and metric alone, not on threads, instruction set or how the rows were cut.
 */
export class CodesWriter {
  readonly #kernel: Kernel;
  readonly #writer: NativeCodesWriter;
  readonly #dimension: number;
  #closed = false;

  /** @throws TrawlError INDEX_FILE_MISSING when the file cannot be made. */
  constructor(path: string, shape: { metric: Metric; dimension: number }, kernel: Kernel) {
    this.#kernel = kernel;
    this.#dimension = shape.dimension;
    this.#writer = kernel.createCodes(path, shape.metric, shape.dimension);
  }

  /**
   * @param rows row-major, any number of rows. Wait for one call before the next.
   * @throws TrawlError NON_FINITE_VECTOR, DISK_FULL.
   */
  async append(rows: Float32Array): Promise<void> {
    await this.#kernel.appendCodes(this.#writer, rows, rows.length / this.#dimension);
  }

  /** Makes the file complete and durable. */
  async finish(): Promise<void> {
    await this.#kernel.finishCodes(this.#writer);
    this.abandon();
  }

  /** Closes without finishing: after an error. Safe to call twice, and after `finish`. */
  abandon(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#kernel.closeCodes(this.#writer);
  }
}
