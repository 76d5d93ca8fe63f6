import type { Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { throwIfCancelled } from '../abort.ts';
import { hashFile } from '../system/file-checksum.ts';
import { TransientFailure } from './retries.ts';

/** An attempt that receives this many bytes resets the count of consecutive failures (`withRetries`). */
const PROGRESS_BYTES = 1024 * 1024;

interface ReceivedFileOptions {
  readonly path: string;
  /** Open for writing. The caller closes it. */
  readonly handle: FileHandle;
  /** Size of the complete file. */
  readonly bytes: number;
  readonly startHash: () => Hash;
  readonly signal: AbortSignal;
  /** Called with the position, which falls to 0 when the transfer starts over. */
  readonly onBytes: (position: number) => void;
  /** Makes the error for a sender that sends more bytes than the file has. */
  readonly tooLong: () => Error;
  /** Throws the caller's error for a write that failed. */
  readonly writingFailed: (error: unknown) => never;
}

/** The file that a transfer writes. Each attempt continues where the one before it ended. */
export class ReceivedFile {
  readonly #options: ReceivedFileOptions;
  /** Hash of all bytes before the position. */
  #hash: Hash;
  #position = 0;
  /** Whether the bytes are from more than one attempt or run. */
  #resumed = false;
  #transferred = 0;

  constructor(options: ReceivedFileOptions) {
    this.#options = options;
    this.#hash = options.startHash();
  }

  /** Bytes of the file so far. */
  get position(): number {
    return this.#position;
  }

  /** Bytes that all attempts of this run received. */
  get transferred(): number {
    return this.#transferred;
  }

  /** Keeps the first bytes of the file, which an earlier run wrote. @throws TrawlError CANCELLED. */
  async keep(bytes: number): Promise<void> {
    const { path, signal, onBytes } = this.#options;
    await hashFile(this.#hash, path, { signal, part: { offset: 0, bytes } });
    this.#position = bytes;
    this.#resumed = bytes > 0;
    onBytes(bytes);
  }

  /**
   * Appends the rest of the file.
   *
   * @throws TransientFailure if the chunks end early; TrawlError CANCELLED; the errors of `tooLong`, `writingFailed` and the sender. Bytes
   * that arrived stay in the file.
   */
  async append(chunks: AsyncIterable<Uint8Array>, progressed: () => void): Promise<void> {
    const { bytes, signal, onBytes, tooLong } = this.#options;
    const start = this.#position;
    this.#resumed = start > 0;
    for await (const chunk of chunks) {
      // After an abort, `fetch` may still deliver buffered chunks.
      throwIfCancelled(signal);
      if (this.#position + chunk.byteLength > bytes) throw tooLong();
      await this.#write(chunk);
      onBytes(this.#position);
      if (this.#position - start >= PROGRESS_BYTES) progressed();
    }
    if (this.#position === bytes) return;
    throw new TransientFailure(`the transfer ended after ${this.#position} of ${bytes} bytes`);
  }

  /** The hash of the file in hex. Only `startOver` may follow. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /** Empties a file whose hash is wrong. @throws TransientFailure if bytes of an earlier attempt may be at fault; else `wrong`. */
  async reject(wrong: Error): Promise<never> {
    const resumed = this.#resumed;
    await this.startOver();
    throw resumed ? new TransientFailure('the resumed file is not the expected one; starting over') : wrong;
  }

  async startOver(): Promise<void> {
    await this.#options.handle.truncate(0);
    this.#hash = this.#options.startHash();
    this.#position = 0;
    this.#resumed = false;
    this.#options.onBytes(0);
  }

  async #write(chunk: Uint8Array): Promise<void> {
    const { handle, writingFailed } = this.#options;
    for (let done = 0; done < chunk.byteLength; ) {
      const { bytesWritten } = await handle
        .write(chunk, done, chunk.byteLength - done, this.#position)
        .catch(writingFailed);
      this.#hash.update(chunk.subarray(done, done + bytesWritten));
      done += bytesWritten;
      this.#position += bytesWritten;
      this.#transferred += bytesWritten;
    }
  }
}
