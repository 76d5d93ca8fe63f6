import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import { shardFolderName } from '../index-files.ts';
import type { Build } from './build.ts';
import { BuildLock, clearFolder, removeLockFiles } from './build-lock.ts';
import { buildDiffers } from './build-settings.ts';
import type { WorkFolder } from './keep-on-failure.ts';
import { OutputFolder } from './output-folder.ts';
import { isComplete } from './planned-shard.ts';

/** The folder of a shard that a job builds. The jobs of an index share the lock of `<out>.partial`. */
export class JobFolder implements WorkFolder {
  readonly folder: string;
  readonly #output: OutputFolder;
  readonly #shards: number;
  #lock: BuildLock | undefined;

  private constructor(output: OutputFolder, { index, of }: { index: number; of: number }) {
    this.#output = output;
    this.#shards = of;
    this.folder = join(output.folder, shardFolderName(index));
  }

  /** @throws TrawlError as `OutputFolder.prepare`; BUILD_DIFFERS if the folder has a build without --shard. */
  static async prepare(build: Build, shard: { readonly index: number; readonly of: number }): Promise<JobFolder> {
    const output = await OutputFolder.prepare(build, 'shared');
    const job = new JobFolder(output, shard);
    try {
      if (existsSync(join(output.folder, BUILD_FILE))) {
        throw buildDiffers(output.folder, ['it is a build without --shard']);
      }
      await mkdir(job.folder, { recursive: true });
      job.#lock = BuildLock.acquire(job.folder, 'exclusive');
      return job;
    } catch (error) {
      job.release();
      throw writeFailure(error, output.final);
    }
  }

  get final(): string {
    return this.#output.final;
  }

  /** Number of complete shards of the index in its folder on this machine. */
  countComplete(): number {
    const folders = Array.from({ length: this.#shards }, (_, i) => join(this.#output.folder, shardFolderName(i)));
    return folders.filter((folder) => isComplete({ folder })).length;
  }

  clear(): Promise<void> {
    return clearFolder(this.folder);
  }

  /** Removes the build's working files from the folder of a complete shard and unlocks it. */
  async finish(): Promise<void> {
    await rm(join(this.folder, BUILD_FILE), { force: true });
    removeLockFiles(this.folder);
    this.release();
  }

  release(): void {
    this.#lock?.release();
    this.#output.release();
  }

  async discard(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    this.#lock?.release();
    await this.#output.discardIfEmpty();
  }
}
