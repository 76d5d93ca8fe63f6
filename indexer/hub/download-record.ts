import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { fileState } from '../../src/base/system/file-checksum.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import type { RepositoryFile } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

/** Prefix of Trawl's own files in a download folder. Files of a repository must not have it. */
export const RECORD_PREFIX = '.trawl-download';

interface RecordFile {
  readonly version: 1;
  readonly repository: string;
  /** Complete, checked files by path. */
  finished: Record<string, { readonly hash: string; readonly state: string }>;
  /** Files in transfer, whose beginning is in a `.partial` file. `etag` is for If-Range; null if the server sent no strong one. */
  partial: Record<string, { readonly hash: string; readonly etag: string | null }>;
}

/** Records the files of a repository that a folder has, so that a later run does not download them again. */
export class DownloadRecord {
  readonly #folder: string;
  readonly #content: RecordFile;
  #saving: Promise<void> = Promise.resolve();

  private constructor(folder: string, content: RecordFile) {
    this.#folder = folder;
    this.#content = content;
  }

  /**
   * The record of a folder. A missing or unreadable record counts as empty; existing files are then hashed again. Throws
   * OUTPUT_NOT_WRITABLE if the folder belongs to another repository.
   */
  static async open(folder: string, repository: string): Promise<DownloadRecord> {
    const content = (await readRecord(recordPath(folder))) ?? { version: 1, repository, finished: {}, partial: {} };
    if (content.repository !== repository) {
      throw new TrawlError(
        'OUTPUT_NOT_WRITABLE',
        `${folder} has files of ${content.repository}, not of ${repository}. Choose another folder, or remove it.`,
      );
    }
    // Without a prototype, because a file may be called `constructor`.
    content.finished = Object.assign(Object.create(null), content.finished);
    content.partial = Object.assign(Object.create(null), content.partial);
    return new DownloadRecord(folder, content);
  }

  /** Path of the finished file. Until it is complete and checked it is `<target>.partial`. */
  target({ path }: { readonly path: string }): string {
    return join(this.#folder, path);
  }

  /** Whether an earlier run finished a file of this path, with whatever content. */
  hasFinished({ path }: RepositoryFile): boolean {
    return this.#content.finished[path] !== undefined;
  }

  /** Whether an earlier run finished the file with the hub's present content, and nobody has changed it since. */
  isUnchanged(file: RepositoryFile): boolean {
    const known = this.#content.finished[file.path];
    return known?.hash === hashText(file) && known.state === fileState(this.target(file));
  }

  /** Number of bytes of the `.partial` file from which a download can resume; 0 if it must start over. */
  async resumableBytes(file: RepositoryFile): Promise<number> {
    if (this.#content.partial[file.path]?.hash !== hashText(file)) return 0;
    const bytes = (await stat(partialOf(this.target(file))).catch(() => undefined))?.size ?? 0;
    return bytes <= file.bytes ? bytes : 0;
  }

  etag({ path }: RepositoryFile): string | null {
    return this.#content.partial[path]?.etag ?? null;
  }

  paths(): string[] {
    return [...new Set([...Object.keys(this.#content.finished), ...Object.keys(this.#content.partial)])];
  }

  setPartial(file: RepositoryFile, etag: string | null): Promise<void> {
    delete this.#content.finished[file.path];
    this.#content.partial[file.path] = { hash: hashText(file), etag };
    return this.#save();
  }

  setFinished(file: RepositoryFile): Promise<void> {
    delete this.#content.partial[file.path];
    this.#content.finished[file.path] = { hash: hashText(file), state: fileState(this.target(file))! };
    return this.#save();
  }

  forget(path: string): Promise<void> {
    delete this.#content.partial[path];
    delete this.#content.finished[path];
    return this.#save();
  }

  /** Serialises the writes: several files may finish at once. */
  #save(): Promise<void> {
    const path = recordPath(this.#folder);
    this.#saving = this.#saving
      .catch(() => undefined)
      .then(() => writeJsonDurably(path, this.#content).catch(writingFailed(path)));
    return this.#saving;
  }
}

function recordPath(folder: string): string {
  return join(folder, `${RECORD_PREFIX}.json`);
}

function hashText({ hash }: RepositoryFile): string {
  return `${hash.algorithm}:${hash.value}`;
}

async function readRecord(path: string): Promise<RecordFile | undefined> {
  try {
    const value = JSON.parse(await readFile(path, 'utf8')) as Partial<RecordFile> | null;
    const usable =
      value?.version === 1 &&
      typeof value.repository === 'string' &&
      isObject(value.finished) &&
      isObject(value.partial) &&
      [...Object.values(value.finished), ...Object.values(value.partial)].every(isObject);
    return usable ? (value as RecordFile) : undefined;
  } catch {
    return undefined;
  }
}
