import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { TrawlError } from '../errors.ts';

export type LockMode = 'shared' | 'exclusive';

/**
 * A lock on a file that the operating system releases when the process ends. Node has no API for it, so this uses SQLite's
 * locks: POSIX record locks (fcntl), on Windows LockFileEx. They exclude other processes of the machine, and other machines
 * if the file system supports it (NFS 4, NFS 3 with its lock daemon, Lustre mounted with `flock`, CephFS, GPFS).
 */
export class FileLock {
  readonly #database: Database.Database;

  private constructor(database: Database.Database) {
    this.#database = database;
  }

  /**
   * Returns undefined if another process holds a conflicting lock. Creates the file if needed; its folder must exist. While
   * this process holds the lock, it must not open the file in another way, because closing it would release the lock.
   *
   * @throws TrawlError OUTPUT_NOT_WRITABLE if the file system does not support locks; errors of SQLite.
   */
  static acquire(path: string, mode: LockMode): FileLock | undefined {
    for (;;) {
      const before = inodeOf(path);
      const database = new Database(path, { timeout: 0 });
      try {
        // The database stays empty; with this mode, SQLite creates no journal file.
        database.pragma('journal_mode = MEMORY');
        database.exec(mode === 'exclusive' ? 'BEGIN EXCLUSIVE' : 'BEGIN; SELECT count(*) FROM sqlite_schema');
      } catch (error) {
        database.close();
        const { code } = error as { code?: string };
        if (code?.startsWith('SQLITE_BUSY')) return undefined;
        if (code?.startsWith('SQLITE_IOERR_') && /LOCK/.test(code)) throw noLocks(path, error);
        throw error;
      }
      // If the path leads to another file than before, the folder was renamed meanwhile and the lock is on the wrong file: try
      // again. A file that this call created had no inode before, so the second try compares.
      if (before !== undefined && inodeOf(path) === before) return new FileLock(database);
      database.close();
    }
  }

  /** Releases the lock; the file stays. May be called twice. */
  release(): void {
    if (this.#database.open) this.#database.close();
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function noLocks(path: string, cause: unknown): TrawlError {
  return new TrawlError(
    'OUTPUT_NOT_WRITABLE',
    `${path}: the file system does not support locks, without which two processes could write to one folder. Mount it with locks, or choose a folder on another file system.`,
    { cause },
  );
}
