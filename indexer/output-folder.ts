import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { TrawlError } from '../src/errors.ts';
import { INDEX_MANIFEST_FILE } from '../src/manifest/index-manifest.ts';
import { syncFolder } from '../src/manifest/write-json.ts';

/**
 * Where an index is made: everything goes to `<out>.partial`, which takes the place of `<out>` by rename when it is
 * whole. So what stands at `<out>` is always a complete index: the old one until the last moment, then the new one.
 */
export class OutputFolder {
  readonly final: string;
  readonly partial: string;

  private constructor(out: string) {
    this.final = resolve(out);
    this.partial = `${this.final}.partial`;
  }

  /** @throws TrawlError INDEX_EXISTS when something stands at `out` that may not be replaced. */
  static async prepare(out: string, overwrite: boolean): Promise<OutputFolder> {
    const folder = new OutputFolder(out);
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
    await rm(folder.partial, { recursive: true, force: true });
    await mkdir(folder.partial, { recursive: true });
    return folder;
  }

  /** Puts the finished folder in its place. A server that has the old index open keeps reading it. */
  async publish(): Promise<void> {
    await syncFolder(this.partial);
    const replaced = `${this.final}.replaced`;
    await rm(replaced, { recursive: true, force: true });
    if (existsSync(this.final)) await rename(this.final, replaced);
    await rename(this.partial, this.final);
    await syncFolder(dirname(this.final));
    await rm(replaced, { recursive: true, force: true });
  }

  async discard(): Promise<void> {
    await rm(this.partial, { recursive: true, force: true });
  }
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
