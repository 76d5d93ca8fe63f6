import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { formatBytes } from '../format.ts';

/** Free bytes on the disk of `path`, which need not exist yet. */
export async function freeBytes(path: string): Promise<number> {
  for (let place = resolve(path); ; place = dirname(place)) {
    try {
      const { bavail, bsize } = await statfs(place);
      return bavail * bsize;
    } catch (error) {
      if (!isNodeError(error) || error.code !== 'ENOENT' || place === dirname(place)) throw error;
    }
  }
}

interface NeededBytes {
  /** The folder or file to write, for the message. It need not exist yet. */
  readonly path: string;
  /** A path on the disk to check, if `path` may be a link to another disk. Default: `path`. */
  readonly disk?: string;
  readonly bytes: number;
  /** Subject of the message, in the plural: `20000 passages`. */
  readonly what: string;
  /** A sentence for the end of the message. */
  readonly hint?: string;
}

/** @throws TrawlError DISK_FULL if the disk has fewer free bytes than needed. */
export async function requireFreeBytes({ path, disk = path, bytes, what, hint }: NeededBytes): Promise<void> {
  const free = await freeBytes(disk);
  if (bytes <= free) return;
  throw new TrawlError(
    'DISK_FULL',
    `${path}: ${what} need ${formatBytes(Math.ceil(bytes))} of disk space, but only ${formatBytes(free)} are free. Free space, ` +
      `or choose another disk.${hint === undefined ? '' : ` ${hint}`}`,
    { details: { path, neededBytes: Math.ceil(bytes), freeBytes: free } },
  );
}
