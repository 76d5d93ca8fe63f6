import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../src/manifest/index-manifest.ts';
import { syncFolder } from '../src/manifest/write-json.ts';
import { writeFailure } from './write-failure.ts';

/** Says whose the partial folder is; gone before the folder is published. */
const OWNER_FILE = 'build.owner';

/**
 * Where an index is made: everything goes to `<out>.partial`, which takes the place of `<out>` by rename when it is
 * whole. So what stands at `<out>` is always a complete index: the old one until the last moment, then the new one.
 */
export class OutputFolder {
  readonly final: string;
  readonly partial: string;
  readonly #replaced: string;
  readonly #owner = `${hostname()} ${process.pid} ${randomUUID()}`;
  /** The owner file is gone because the folder is about to be published. */
  #complete = false;

  private constructor(out: string) {
    this.final = resolve(out);
    this.partial = `${this.final}.partial`;
    this.#replaced = `${this.final}.replaced`;
  }

  /**
   * @throws TrawlError INDEX_EXISTS when something stands at `out` that may not be replaced, OUTPUT_NOT_WRITABLE or
   * DISK_FULL when no folder can be made there.
   */
  static async prepare(out: string, overwrite: boolean): Promise<OutputFolder> {
    const folder = new OutputFolder(out);
    await folder.#recover();
    if (existsSync(folder.final)) {
      if (!existsSync(join(folder.final, INDEX_MANIFEST_FILE)) && !isEmptyFolder(folder.final)) {
        throw new TrawlError(
          'INDEX_EXISTS',
          `${folder.final} exists and is no index; it is left alone. Choose another --out.`,
        );
      }
      if (!overwrite && !isEmptyFolder(folder.final)) {
        throw new TrawlError(
          'INDEX_EXISTS',
          `${folder.final} already holds an index. Choose another --out, or replace it with --overwrite.`,
        );
      }
    }
    await folder.#checkNobodyBuilds();
    try {
      await rm(folder.partial, { recursive: true, force: true });
      await makeFolder(folder.partial);
      await writeFile(join(folder.partial, OWNER_FILE), folder.#owner);
    } catch (error) {
      throw writeFailure(error, folder.final);
    }
    return folder;
  }

  /** @throws TrawlError INDEX_EXISTS when another build has begun the folder anew, or somebody removed it. */
  async checkOwner(): Promise<void> {
    if (await this.#isOwner()) return;
    throw new TrawlError(
      'INDEX_EXISTS',
      `${this.partial} was removed or taken over by another build of the same index; this one stops.`,
    );
  }

  /** Puts the finished folder in its place. A server that has the old index open keeps reading it. */
  async publish(): Promise<void> {
    await this.checkOwner();
    await rm(join(this.partial, OWNER_FILE));
    this.#complete = true;
    await syncFolder(this.partial);
    await rm(this.#replaced, { recursive: true, force: true });
    if (existsSync(this.final)) await rename(this.final, this.#replaced);
    try {
      await rename(this.partial, this.final);
    } catch (error) {
      await this.#recover();
      throw error;
    }
    await syncFolder(dirname(this.final));
    await rm(this.#replaced, { recursive: true, force: true });
  }

  /** A process that died between the two renames of `publish` left the old index under another name: back with it. */
  async #recover(): Promise<void> {
    if (!existsSync(this.final) && existsSync(join(this.#replaced, INDEX_MANIFEST_FILE))) {
      await rename(this.#replaced, this.final);
    }
  }

  /** Removes what was begun, unless it is another build's by now. */
  async discard(): Promise<void> {
    if (await this.#isOwner()) await rm(this.partial, { recursive: true, force: true });
  }

  /** A build that was started twice must not end the first one. A dead process keeps nobody out. */
  async #checkNobodyBuilds(): Promise<void> {
    const [host, pid] = (await readFile(join(this.partial, OWNER_FILE), 'utf8').catch(() => '')).split(' ');
    if (pid === undefined || host !== hostname() || Number(pid) === process.pid || !isRunning(Number(pid))) return;
    throw new TrawlError(
      'INDEX_EXISTS',
      `Process ${pid} is building ${this.final} at this moment. Wait for it, stop it, or choose another --out.`,
      { details: { pid: Number(pid) } },
    );
  }

  async #isOwner(): Promise<boolean> {
    if (this.#complete) return true;
    try {
      return (await readFile(join(this.partial, OWNER_FILE), 'utf8')) === this.#owner;
    } catch {
      return false;
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** With its parents. Node's own `recursive` never ends where a parent exists and takes no folders, such as /proc. */
async function makeFolder(path: string): Promise<void> {
  const parent = dirname(path);
  if (!existsSync(parent)) await makeFolder(parent);
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
