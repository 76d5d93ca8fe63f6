import { type FileHandle, open } from 'node:fs/promises';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { FileBytes } from './outputs/result-encoder.ts';

/** An output that is a pipe or a device: bytes are written as they come, and a killed run starts again. */
export class OutputStream {
  readonly resumed = undefined;
  readonly isComplete = false;
  readonly #path: string;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(path: string): Promise<OutputStream> {
    try {
      return new OutputStream(path, await open(path, 'w'));
    } catch (error) {
      throw writeFailure(error, path);
    }
  }

  async append(bytes: FileBytes): Promise<void> {
    try {
      for (const part of bytes) await this.#file.writeFile(part);
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
  }

  async save(): Promise<void> {}

  async finish(): Promise<void> {}

  async close(): Promise<void> {
    await this.#file.close();
  }
}
