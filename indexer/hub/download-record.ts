import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { FileHash } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

/** Prefix of Trawl's own files in a download folder. Files of a repository must not have it. */
export const RECORD_PREFIX = '.trawl-download';
const RECORD_FILE = `${RECORD_PREFIX}.json`;

/** A complete, checked file. */
export interface FinishedFile {
  readonly hash: string;
  readonly bytes: number;
  readonly mtimeMs: number;
}

/** A file in transfer, whose beginning is in a `.partial` file. */
export interface PartialFile {
  readonly hash: string;
  /** The sending server's ETag, for If-Range; null if it sent no strong one. */
  readonly etag: string | null;
}

interface RecordFile {
  readonly version: 1;
  readonly repository: string;
  finished: Record<string, FinishedFile>;
  partial: Record<string, PartialFile>;
}

/** Records the files of a repository that a folder has, so that a later run does not download them again. */
export class DownloadRecord {
  readonly #path: string;
  readonly #content: RecordFile;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, content: RecordFile) {
    this.#path = path;
    this.#content = content;
  }

  /**
   * The record of a folder. A missing or unreadable record counts as empty; existing files are then hashed again.
   *
   * @throws TrawlError OUTPUT_NOT_WRITABLE if the folder belongs to another repository.
   */
  static async open(folder: string, repository: string): Promise<DownloadRecord> {
    const path = join(folder, RECORD_FILE);
    const read = await readRecord(path);
    if (read !== undefined && read.repository !== repository) {
      throw new TrawlError(
        'OUTPUT_NOT_WRITABLE',
        `${folder} has files of ${read.repository}, not of ${repository}. Choose another folder, or remove it.`,
      );
    }
    const empty: RecordFile = { version: 1, repository, finished: {}, partial: {} };
    const content = read ?? empty;
    // Without a prototype, because a file may be called `constructor`.
    content.finished = Object.assign(Object.create(null), content.finished);
    content.partial = Object.assign(Object.create(null), content.partial);
    return new DownloadRecord(path, content);
  }

  finished(path: string): FinishedFile | undefined {
    return this.#content.finished[path];
  }

  partial(path: string): PartialFile | undefined {
    return this.#content.partial[path];
  }

  /** All recorded paths. */
  paths(): string[] {
    return [...new Set([...Object.keys(this.#content.finished), ...Object.keys(this.#content.partial)])];
  }

  setPartial(path: string, partial: PartialFile): Promise<void> {
    delete this.#content.finished[path];
    this.#content.partial[path] = partial;
    return this.#save();
  }

  setFinished(path: string, finished: FinishedFile): Promise<void> {
    delete this.#content.partial[path];
    this.#content.finished[path] = finished;
    return this.#save();
  }

  forget(path: string): Promise<void> {
    delete this.#content.partial[path];
    delete this.#content.finished[path];
    return this.#save();
  }

  /** Serialises the writes: several files may finish at once. */
  #save(): Promise<void> {
    this.#saving = this.#saving
      .catch(() => undefined)
      .then(() => writeJsonDurably(this.#path, this.#content).catch(writingFailed(this.#path)));
    return this.#saving;
  }
}

export function hashText({ algorithm, value }: FileHash): string {
  return `${algorithm}:${value}`;
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
