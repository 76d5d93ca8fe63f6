import { statSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { resolve } from 'node:path';
import { TrawlError } from '../errors.ts';
import { writeAt } from './durable-file.ts';
import { partialOf } from './partial-file.ts';
import { writeFailure } from './write-failure.ts';

/**
 * A file that is written to `<path>.partial` and resumes after a kill: what was written after the last checkpoint is cut off and
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
   * @throws TrawlError OUTPUT_DIFFERS if it has fewer bytes, OUTPUT_NOT_WRITABLE, DISK_FULL.
   */
  static async open(path: string, bytes: number, mode?: number): Promise<CheckpointedFile> {
    const final = resolve(path);
    let file: FileHandle | undefined;
    try {
      file = await open(partialOf(final), bytes === 0 ? 'w' : 'r+', mode);
      const { size } = await file.stat();
      if (size < bytes) {
        throw new TrawlError(
          'OUTPUT_DIFFERS',
          `${partialOf(final)} has ${size} bytes, and the run that wrote it recorded ${bytes}: the file was changed.`,
        );
      }
      await file.truncate(bytes);
      return new CheckpointedFile(final, file, bytes);
    } catch (error) {
      await file?.close().catch(() => undefined);
      throw writeFailure(error, final);
    }
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends bytes, which may be lost until the next checkpoint. @throws TrawlError DISK_FULL, OUTPUT_NOT_WRITABLE. */
  async write(content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    try {
      await writeAt(this.#file, bytes, this.#bytes);
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    this.#bytes += bytes.length;
  }

  /**
   * Syncs the file to disk. Returns its bytes: the checkpoint.
   *
   * @throws TrawlError OUTPUT_DIFFERS if the partial file was removed or replaced meanwhile; DISK_FULL, OUTPUT_NOT_WRITABLE.
   */
  async checkpoint(): Promise<number> {
    try {
      await this.#file.datasync();
      const found = statSync(partialOf(this.path), { bigint: true, throwIfNoEntry: false });
      // Writing to a removed file succeeds, so only this comparison finds it.
      if (found?.ino !== (await this.#file.stat({ bigint: true })).ino) throw removed(this.path);
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    return this.#bytes;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/**
 * Renames a closed partial file to its path. Does nothing if that was done before: then the path has a file of these bytes. The caller
 * syncs the folder.
 *
 * @throws TrawlError OUTPUT_DIFFERS if neither file is there; DISK_FULL, OUTPUT_NOT_WRITABLE.
 */
export async function publishPartial(path: string, bytes: number): Promise<void> {
  const final = resolve(path);
  try {
    await rename(partialOf(final), final);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw writeFailure(error, final);
    if (sizeOf(final) !== bytes) throw removed(final);
  }
}

function removed(path: string): TrawlError {
  return new TrawlError(
    'OUTPUT_DIFFERS',
    `${partialOf(path)} was removed or replaced while this run wrote it. Begin again with --restart.`,
    { details: { path } },
  );
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
