import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { INDEX_MANIFEST_FILE } from '../manifest/index-manifest.ts';
import { type IndexSnapshot, MAX_MANIFEST_BYTES, readSnapshot } from './index-snapshot.ts';

/** How often an index may change while its files are opened. */
const MAX_CHANGES = 10;

interface HeldFile {
  /** For messages. */
  readonly path: string;
  readonly handle: FileHandle;
  readonly bytes: number;
  /** Changes if another file takes the path. */
  readonly tag: string;
}

/**
 * The files of an index folder, all open: they can be read even if another process replaces or removes them meanwhile, because it
 * never changes a file in place.
 */
export class HeldIndex {
  readonly snapshot: IndexSnapshot;
  /** With links resolved. */
  readonly folder: string;
  readonly #files: ReadonlyMap<string, HeldFile>;

  private constructor(folder: string, snapshot: IndexSnapshot, files: ReadonlyMap<string, HeldFile>) {
    this.folder = folder;
    this.snapshot = snapshot;
    this.#files = files;
  }

  /**
   * @throws TrawlError INDEX_NOT_FOUND, INDEX_MANIFEST_INVALID, INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN (also for
   * a link that leads out of the index) or INDEX_VERSION_UNSUPPORTED.
   */
  static async open(path: string): Promise<HeldIndex> {
    const folder = resolve(path);
    let seen: string | undefined;
    for (let changes = 0; ; changes++) {
      try {
        return await HeldIndex.#open(folder);
      } catch (error) {
        if (changes === MAX_CHANGES || !(error instanceof TrawlError) || !error.code.startsWith('INDEX_')) throw error;
        // The manifests change one after another, so the error may only mean that they did not fit each other.
        const found = await readSnapshot(folder, (file) => readOnce(folder, file)).then(
          ({ id }) => id,
          () => undefined,
        );
        if (found === undefined || found === seen) throw error;
        seen = found;
      }
    }
  }

  static async #open(path: string): Promise<HeldIndex> {
    // Once, so that a link that is switched meanwhile does not mix two indexes.
    const folder = await realpath(path).catch((error: unknown) => {
      throw missing(path, INDEX_MANIFEST_FILE, error);
    });
    const files = new Map<string, HeldFile>();
    try {
      const snapshot = await readSnapshot(folder, async (path) => {
        const file = await hold(folder, path);
        files.set(path, file);
        return readWhole(file);
      });
      for (const { path, bytes } of snapshot.files) {
        const file = await hold(folder, path);
        files.set(path, file);
        if (bytes === null || bytes === file.bytes) continue;
        throw new TrawlError(
          'INDEX_FILE_TRUNCATED',
          `${join(folder, path)}: has ${file.bytes} bytes, but the manifest says ${bytes}. Restore the file or build the index again.`,
        );
      }
      return new HeldIndex(folder, snapshot, files);
    } catch (error) {
      await closeFiles(files);
      throw error;
    }
  }

  /** Undefined for a path that is not a file of the index. */
  file(path: string): HeldFile | undefined {
    return this.#files.get(path);
  }

  close(): Promise<void> {
    return closeFiles(this.#files);
  }
}

async function closeFiles(files: ReadonlyMap<string, HeldFile>): Promise<void> {
  await Promise.all(Array.from(files.values(), ({ handle }) => handle.close()));
}

/**
 * The bytes of a held file. It reads through the handle: a stream over its number would close it under the handle when it is destroyed,
 * and later reads would be of whatever file got the number.
 */
export async function* bytesOf(
  { path, handle }: HeldFile,
  { first, last, chunkBytes }: { readonly first: number; readonly last: number; readonly chunkBytes: number },
): AsyncGenerator<Buffer> {
  for (let position = first; position <= last; ) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, last + 1 - position));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) {
      throw new TrawlError(
        'SOURCE_CHANGED',
        `${path}: was cut off at byte ${position} while it was read. Restore the file or build the index again, then copy it again.`,
      );
    }
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function readOnce(folder: string, path: string): Promise<Buffer> {
  const file = await hold(folder, path);
  try {
    return await readWhole(file);
  } finally {
    await file.handle.close();
  }
}

async function readWhole({ path, handle, bytes }: HeldFile): Promise<Buffer> {
  if (bytes > MAX_MANIFEST_BYTES) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${path}: has ${bytes} bytes; a manifest has at most ${MAX_MANIFEST_BYTES}. Restore the file or build the index again.`,
    );
  }
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await handle.read(buffer, 0, bytes, 0);
  return buffer.subarray(0, bytesRead);
}

async function hold(folder: string, path: string): Promise<HeldFile> {
  const file = join(folder, path);
  await checkInside(folder, path);
  let handle: FileHandle;
  try {
    // A pipe in place of a file must not block.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw missing(folder, path, error);
  }
  const stats = await handle.stat();
  if (stats.isFile()) return { path: file, handle, bytes: stats.size, tag: tagOf(stats) };
  await handle.close();
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${file} is not a regular file. Restore the file or build the index again.`,
  );
}

/** The shard's folder may be a link, as the format allows. A link to a file must stay inside the shard's or the index's folder. */
async function checkInside(folder: string, path: string): Promise<void> {
  const slash = path.lastIndexOf('/');
  const places = [folder, ...(slash < 0 ? [] : [join(folder, path.slice(0, slash))])];
  try {
    const real = await realpath(join(folder, path));
    for (const place of places) {
      const inside = relative(await realpath(place), real);
      if (!inside.startsWith(`..${sep}`) && inside !== '..') return;
    }
  } catch (error) {
    throw missing(folder, path, error);
  }
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${join(folder, path)} is a symbolic link that leads out of the index, so it is not copied. Replace it by the file.`,
  );
}

function missing(folder: string, path: string, cause: unknown): unknown {
  if (!isNodeError(cause)) return cause;
  const isMissing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR';
  if (path === INDEX_MANIFEST_FILE && isMissing) {
    return new TrawlError(
      'INDEX_NOT_FOUND',
      `${folder}: no index found (${INDEX_MANIFEST_FILE} is missing). Check the path, or build an index there with \`trawl index\`.`,
      { cause },
    );
  }
  return new TrawlError(
    'INDEX_FILE_MISSING',
    `${join(folder, path)} cannot be read (${cause.code}). Restore the file or build the index again.`,
    { cause },
  );
}

function tagOf({ dev, ino, size, mtimeMs }: Stats): string {
  return [dev, ino, size, Math.round(mtimeMs * 1000)].map((value) => value.toString(36)).join('-');
}
