import { statSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { resolve } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import { writeFailure } from '../src/system/write-failure.ts';

/**
 * A file that is written to `<path>.partial` and goes on after a kill: what was written after the last checkpoint is cut off and
 * written again. The caller stores the number of bytes at each checkpoint.
 */
export class CheckpointedFile {
  readonly path: string;
  readonly #file: FileHandle;
  #bytes: number;

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.path = path;
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Whether the partial file has the bytes of a checkpoint; at 0 bytes it need not exist. */
  static fits(path: string, bytes: number): boolean {
    return bytes === 0 || (sizeOf(partialOf(resolve(path))) ?? 0) >= bytes;
  }

  /** Whether a file that ended with these bytes is there, under its partial path or its own. */
  static isWhole(path: string, bytes: number): boolean {
    return (sizeOf(partialOf(resolve(path))) ?? sizeOf(path)) === bytes;
  }

  /**
   * Opens the partial file at a checkpoint; 0 bytes: a new one, with these permissions.
   *
   * @throws TrawlError OUTPUT_EXISTS if it has fewer bytes.
   */
  static async open(path: string, bytes: number, mode?: number): Promise<CheckpointedFile> {
    const final = resolve(path);
    try {
      const file = await open(partialOf(final), bytes === 0 ? 'w' : 'r+', mode);
      const { size } = await file.stat();
      if (size < bytes) {
        await file.close();
        throw new TrawlError(
          'OUTPUT_EXISTS',
          `${partialOf(final)} has ${size} bytes; the run that wrote it recorded ${bytes}. Remove it and the .work file beside it to start again.`,
        );
      }
      await file.truncate(bytes);
      return new CheckpointedFile(final, file, bytes);
    } catch (error) {
      throw writeFailure(error, final);
    }
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    try {
      for (let start = 0; start < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, start, bytes.length - start, this.#bytes + start);
        start += bytesWritten;
      }
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    this.#bytes += bytes.length;
  }

  /** Syncs the file to disk. Returns its bytes: the checkpoint. */
  async checkpoint(): Promise<number> {
    try {
      await this.#file.sync();
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    return this.#bytes;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/** Renames a closed partial file to its path. Does nothing if that was done before. The caller syncs the folder. */
export async function publishPartial(path: string): Promise<void> {
  const final = resolve(path);
  try {
    await rename(partialOf(final), final);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw writeFailure(error, final);
  }
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

export function partialOf(path: string): string {
  return `${path}.partial`;
}
