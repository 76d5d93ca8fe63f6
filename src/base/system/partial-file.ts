import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { syncFolder, writeAt } from './durable-file.ts';
import { writeFailure } from './write-failure.ts';

/** The path of a file until it is complete. */
export function partialOf(path: string): string {
  return `${path}.partial`;
}

/** Text kept in memory before it is written. */
const BUFFER_CHARACTERS = 256 * 1024;

/**
 * Writes `<path>.partial` and renames it to `path` once it is complete and synced to disk. The next run replaces the partial
 * file of a killed process.
 */
export class PartialFile {
  readonly path: string;
  readonly partial: string;
  readonly #file: FileHandle;
  readonly #inode: bigint;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #pending = '';

  private constructor(path: string, file: FileHandle, inode: bigint) {
    this.path = path;
    this.partial = partialOf(path);
    this.#file = file;
    this.#inode = inode;
  }

  /** @param mode permissions of the file; default: as for any new file. @throws TrawlError OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL. */
  static async create(path: string, overwrite: boolean, mode?: number): Promise<PartialFile> {
    const final = resolve(path);
    if (existsSync(final) && !overwrite) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `${final} already exists. Choose another path, or replace it with --overwrite.`,
      );
    }
    try {
      await rm(partialOf(final), { force: true });
      const file = await open(partialOf(final), 'wx', mode);
      return new PartialFile(final, file, (await file.stat({ bigint: true })).ino);
    } catch (error) {
      if (isNodeError(error) && error.code === 'EEXIST') throw takenOver(final);
      throw writeFailure(error, final);
    }
  }

  /** Bytes written so far, without buffered text. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends bytes, or text, which is buffered. */
  async write(content: string | Uint8Array): Promise<void> {
    if (typeof content === 'string') this.#pending += content;
    if (typeof content !== 'string' || this.#pending.length >= BUFFER_CHARACTERS) await this.#writePending();
    if (typeof content !== 'string') await this.#writeBytes(content);
  }

  async #writePending(): Promise<void> {
    const text = this.#pending;
    this.#pending = '';
    if (text !== '') await this.#writeBytes(Buffer.from(text));
  }

  async #writeBytes(bytes: Uint8Array): Promise<void> {
    try {
      await writeAt(this.#file, bytes, this.#bytes);
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** Syncs the file, renames it to its final path and returns its SHA-256 in hex. */
  async publish(): Promise<string> {
    await this.#writePending();
    try {
      await this.#file.sync();
      await this.#file.close();
      const found = await stat(this.partial, { bigint: true }).catch(() => undefined);
      if (found?.ino !== this.#inode) throw takenOver(this.path);
      await rename(this.partial, this.path);
      await syncFolder(dirname(this.path));
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    return this.#hash.digest('hex');
  }

  /** Removes the partial file, unless another run has replaced it. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    const found = await stat(this.partial, { bigint: true }).catch(() => undefined);
    if (found?.ino === this.#inode) await rm(this.partial, { force: true });
  }
}

function takenOver(path: string): TrawlError {
  return new TrawlError(
    'OUTPUT_EXISTS',
    `Another run replaced ${partialOf(path)}. This run stops; let only one run write ${path}.`,
  );
}
