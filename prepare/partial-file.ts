import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { writeFailure } from '../indexer/write-failure.ts';
import { TrawlError } from '../src/errors.ts';
import { syncFolder } from '../src/manifest/write-json.ts';

/**
 * A file in the making: everything goes to `<path>.partial`, which is made durable and takes the final name when it is
 * whole. A process that dies leaves the partial file, which the next one replaces.
 */
export class PartialFile {
  readonly path: string;
  readonly partial: string;
  readonly #file: FileHandle;
  readonly #inode: bigint;
  readonly #hash = createHash('sha256');
  #bytes = 0;

  private constructor(path: string, file: FileHandle, inode: bigint) {
    this.path = path;
    this.partial = `${path}.partial`;
    this.#file = file;
    this.#inode = inode;
  }

  /** @throws TrawlError OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE or DISK_FULL. */
  static async create(path: string, overwrite: boolean): Promise<PartialFile> {
    const final = resolve(path);
    if (existsSync(final) && !overwrite) {
      throw new TrawlError('OUTPUT_EXISTS', `${final} exists. Choose another place, or replace it with --overwrite.`);
    }
    try {
      await rm(`${final}.partial`, { force: true });
      const file = await open(`${final}.partial`, 'wx');
      return new PartialFile(final, file, (await file.stat({ bigint: true })).ino);
    } catch (error) {
      throw writeFailure(error, final);
    }
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  async write(bytes: Uint8Array): Promise<void> {
    try {
      for (let start = 0; start < bytes.length; ) {
        start += (await this.#file.write(bytes, start, bytes.length - start)).bytesWritten;
      }
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** Gives the file its name; its SHA-256 in hex. */
  async publish(): Promise<string> {
    try {
      await this.#file.sync();
      await this.#file.close();
      const found = await stat(this.partial, { bigint: true }).catch(() => undefined);
      if (found?.ino !== this.#inode) {
        throw new TrawlError('OUTPUT_EXISTS', `${this.partial} was taken over by another run; this one stops.`);
      }
      await rename(this.partial, this.path);
      await syncFolder(dirname(this.path));
    } catch (error) {
      throw writeFailure(error, this.path);
    }
    return this.#hash.digest('hex');
  }

  /** Removes what was begun, unless it is another run's by now. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    const found = await stat(this.partial, { bigint: true }).catch(() => undefined);
    if (found?.ino === this.#inode) await rm(this.partial, { force: true });
  }
}
