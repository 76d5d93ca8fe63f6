import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { TrawlError } from './errors.ts';

export type LockMode = 'shared' | 'exclusive';

/**
 * A lock on a file, held as long as this process lives and not longer: the operating system takes it back from a dead
 * one. Node has no call for it, so SQLite's locks are used, which are POSIX record locks (fcntl): they hold between
 * processes of a machine, and between machines where the file system passes them on (NFS 4, NFS 3 with its lock daemon,
 * Lustre mounted with `flock`, CephFS, GPFS). On Windows they are LockFileEx.
 */
export class FileLock {
  readonly #database: Database.Database;

  private constructor(database: Database.Database) {
    this.#database = database;
  }

  /**
   * Undefined where another holds a lock that keeps this one out. The file is made where it is missing; its folder must
   * be there. Nobody may open the file by other means while the lock is held: closing it would end the lock.
   *
   * @throws TrawlError OUTPUT_NOT_WRITABLE where the file system has no locks; errors of SQLite.
   */
  static acquire(path: string, mode: LockMode): FileLock | undefined {
    for (;;) {
      const before = inodeOf(path);
      const database = new Database(path, { timeout: 0 });
      try {
        // The lock is all that is wanted of the database: it stays empty, and no journal appears beside it.
        database.pragma('journal_mode = MEMORY');
        database.exec(mode === 'exclusive' ? 'BEGIN EXCLUSIVE' : 'BEGIN; SELECT count(*) FROM sqlite_schema');
      } catch (error) {
        database.close();
        const { code } = error as { code?: string };
        if (code?.startsWith('SQLITE_BUSY')) return undefined;
        if (code?.startsWith('SQLITE_IOERR_') && /LOCK/.test(code)) throw noLocks(path, error);
        throw error;
      }
      // The folder may have been renamed between opening and locking: then the lock is on another's file.
      if (before !== undefined && inodeOf(path) === before) return new FileLock(database);
      database.close();
    }
  }

  /** Ends the lock. The file stays. Safe to call twice. */
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
    `${path}: the file system has no locks, so two builds could not be kept apart. Mount it with locks, or build on another.`,
    { cause },
  );
}
