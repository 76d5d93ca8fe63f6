import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { type ErrorCode, TrawlError } from '../../base/errors.ts';
import { WatchedFiles } from '../../engine/native/watched-files.ts';
import {
  LOOKUP_KEYS,
  LOOKUPS,
  type Lookup,
  lookupIndex,
  PASSAGE_APPLICATION_ID,
  PASSAGE_SCHEMA_VERSION,
} from './schema.ts';

/** Fields of SQLite's own 100-byte file header (sqlite.org/fileformat2.html, "The Database Header"). */
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
const OFFSET = { pageSize: 16, pageCount: 28, userVersion: 60, applicationId: 68 } as const;

/**
 * Checks the header and size of a passage file.
 *
 * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED.
 */
export function checkPassageFile(path: string): void {
  const header = new Uint8Array(HEADER_BYTES);
  let fileBytes: number;
  let headerBytes: number;
  try {
    // Checked first, because opening a pipe would block.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    const file = openSync(path, 'r');
    try {
      fileBytes = fstatSync(file).size;
      headerBytes = readSync(file, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    const message = `${path}: cannot be read (${(cause as Error).message}). Restore the file or build the index again.`;
    throw new TrawlError('INDEX_FILE_MISSING', message, { cause });
  }
  const refuse = (code: ErrorCode, reason: string): never => {
    throw new TrawlError(code, `${path}: ${reason}.`);
  };
  if (headerBytes < HEADER_BYTES)
    refuse('INDEX_FILE_TRUNCATED', `has only ${fileBytes} bytes, too few for a SQLite file. Copy or build it again`);
  const view = new DataView(header.buffer);
  if (new TextDecoder('latin1').decode(header.subarray(0, MAGIC.length)) !== MAGIC)
    refuse('INDEX_FILE_FOREIGN', 'is not a SQLite file. Copy or build it again');
  if (view.getUint32(OFFSET.applicationId) !== PASSAGE_APPLICATION_ID)
    refuse('INDEX_FILE_FOREIGN', 'is a SQLite file, but not a passage file. Copy or build it again');
  const version = view.getUint32(OFFSET.userVersion);
  if (version !== PASSAGE_SCHEMA_VERSION) {
    const expected = `this program reads version ${PASSAGE_SCHEMA_VERSION}. Build the index again`;
    refuse('INDEX_VERSION_UNSUPPORTED', `has passage table version ${version}; ${expected}`);
  }
  const pageSize = view.getUint16(OFFSET.pageSize) === 1 ? 65_536 : view.getUint16(OFFSET.pageSize);
  const expected = view.getUint32(OFFSET.pageCount) * pageSize;
  if (fileBytes !== expected)
    refuse('INDEX_FILE_TRUNCATED', `has ${fileBytes} bytes, but its header says ${expected}. Copy or build it again`);
}

/** An id as stored in the table. */
export type StoredId = string | bigint;

/** A row with the values that look-ups compare, as SQLite has them. */
interface KeyedRow {
  readonly row: number;
  readonly document: string;
  /** As text; null for a row without one. */
  readonly id: string | null;
  readonly keys: Readonly<Record<Lookup, StoredId | number | null>>;
}

/**
 * A complete passage file, opened for reading. Calls block, so use it only in worker threads and commands. Every method that
 * reads, and every iterator, throws TrawlError INDEX_FILE_FOREIGN if a page of the file is damaged. A running iterator keeps
 * the file from being closed: return it first.
 */
export class PassageFile {
  /** Content hash recorded by the writer, in hex. */
  readonly sha256: string | undefined;
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement>();
  readonly #watch: WatchedFiles;
  /** Names of the look-ups' indexes in the file. */
  readonly #indexes: ReadonlySet<string>;

  /**
   * `isServed`: the file stays open for long. It is read through a memory map, which is faster for random rows, if the engine can keep a
   * truncated file from ending the process, and `requireUnchanged` notices changes.
   *
   * @throws TrawlError as `checkPassageFile`; INDEX_FILE_FOREIGN also if SQLite cannot read the tables.
   */
  constructor(path: string, { isServed = false }: { isServed?: boolean } = {}) {
    checkPassageFile(path);
    this.#path = path;
    this.#database = new Database(path, { readonly: true, fileMustExist: true });
    try {
      if (isServed && WatchedFiles.areGuarded) this.#database.pragma('mmap_size = 1073741824');
      // In a transaction, SQLite does not look at the file before each read, and so never maps a changed file anew, without a guard.
      if (isServed) this.#database.exec('BEGIN');
      const indexes = this.#database.prepare("SELECT name FROM sqlite_schema WHERE type = 'index'").pluck().all();
      this.#indexes = new Set(indexes as string[]);
      // Fails if there is no such table or column.
      this.#statement('SELECT document FROM passages WHERE row = ?');
      this.sha256 = this.#statement("SELECT value FROM meta WHERE key = 'sha256'").get() as string | undefined;
      // SQLite has mapped the file for the statements above.
      this.#watch = new WatchedFiles(isServed ? [path] : []);
    } catch (cause) {
      this.#database.close();
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${path}: its tables cannot be read (${(cause as Error).message}). Copy or build it again.`,
        { cause },
      );
    }
  }

  get rows(): number {
    return this.#first('SELECT coalesce(max(row) + 1, 0) FROM passages');
  }

  /** JSON text of a row's document; undefined for a row that does not exist. */
  document(row: number): string | undefined {
    return this.#first('SELECT document FROM passages WHERE row = ?', row);
  }

  /** The id of a row as text, null for a row without one, undefined for a row that does not exist. Integers are exact. */
  id(row: number): string | null | undefined {
    return this.#first('SELECT CAST(id AS TEXT) FROM passages WHERE row = ?', row);
  }

  /** The row's line in the corpus file. */
  line(row: number): number {
    return this.#first('SELECT line FROM passages WHERE row = ?', row);
  }

  rowsWithId(): number {
    return this.#first('SELECT count(*) FROM passages WHERE id IS NOT NULL');
  }

  /** Passages with the id of an earlier passage of this file. */
  repeatedIds(): number {
    return this.#first(
      'SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM passages WHERE id IS NOT NULL GROUP BY id)',
    );
  }

  /** Bytes of the longest document, as UTF-8; 0 without rows. Reads the whole file. */
  longestDocument(): number {
    return this.#first('SELECT coalesce(max(length(CAST(document AS BLOB))), 0) FROM passages');
  }

  /** The documents of the existing rows among [first, first + count). */
  range(first: number, count: number): string[] {
    return this.#all('SELECT document FROM passages WHERE row >= ? AND row < ? ORDER BY row', first, first + count);
  }

  /** As `id`, for the existing rows among [first, first + count): much cheaper than one after another. */
  idRange(first: number, count: number): (string | null)[] {
    const sql = 'SELECT CAST(id AS TEXT) FROM passages WHERE row >= ? AND row < ? ORDER BY row';
    return this.#all(sql, first, first + count);
  }

  /** The existing rows among [first, first + count), with the values that look-ups compare. */
  keyedRange(first: number, count: number): KeyedRow[] {
    const keys = LOOKUPS.map((by) => LOOKUP_KEYS[by]).join(', ');
    const sql = `SELECT row, document, CAST(id AS TEXT), ${keys} FROM passages WHERE row >= ? AND row < ? ORDER BY row`;
    const statement = this.#statement(sql).safeIntegers().raw();
    type Columns = [row: bigint, document: string, id: string | null, ...keys: KeyedRow['keys'][Lookup][]];
    const rows = this.#reading(() => statement.all(first, first + count) as Columns[]);
    return rows.map(([row, document, id, ...values]) => ({
      row: Number(row),
      document,
      id,
      keys: Object.fromEntries(LOOKUPS.map((by, i) => [by, values[i]!])) as KeyedRow['keys'],
    }));
  }

  /** Whether the file was built with that look-up. */
  has(by: Lookup): boolean {
    return this.#indexes.has(lookupIndex(by));
  }

  /**
   * Rows with this key, ascending, at most `limit`. The key of an integer id, of a passage or a document, is its decimal text.
   *
   * @throws TrawlError NOT_SUPPORTED if the file was built without that look-up.
   */
  find(by: Lookup, key: string, limit: number): number[] {
    if (!this.has(by)) {
      const message = `This index cannot look up passages by ${by}. Build it again with this version.`;
      throw new TrawlError('NOT_SUPPORTED', message, { details: { by } });
    }
    // INDEXED BY, so that the planner never chooses to scan the whole file.
    const from = `passages INDEXED BY ${lookupIndex(by)}`;
    const sql = `SELECT row FROM ${from} WHERE ${LOOKUP_KEYS[by]} IN (?, ?) ORDER BY row LIMIT ?`;
    return this.#all(sql, key, integerKey(by, key), limit);
  }

  /** Streams all documents in row order. */
  documents(): Generator<string, void> {
    return this.#stream(this.#database.prepare('SELECT document FROM passages ORDER BY row').pluck());
  }

  /** Streams the id of every row in row order; null for a row without one. */
  ids(): Generator<StoredId | null, void> {
    return this.#stream(this.#database.prepare('SELECT id FROM passages ORDER BY row').pluck().safeIntegers());
  }

  /** Streams all rows in order. */
  *passages(): Generator<{ row: number; id: StoredId | null; line: number; document: string }, void> {
    const rows = this.#streamRows<[bigint, StoredId | null, bigint, string]>('row, id, line, document', 'ORDER BY row');
    for (const [row, id, line, document] of rows) yield { row: Number(row), id, line: Number(line), document };
  }

  /** Streams all ids with their rows, by id in SQLite's order, then by row. */
  *idsInOrder(): Generator<{ id: StoredId; row: number }, void> {
    const rows = this.#streamRows<[StoredId, bigint]>('id, row', 'WHERE id IS NOT NULL ORDER BY id, row');
    for (const [id, row] of rows) yield { id, row: Number(row) };
  }

  /** Describes the look-ups that fail. SQLite's integrity check does not detect an index over another expression. */
  brokenLookups(): string[] {
    return LOOKUPS.filter((by) => this.has(by)).flatMap((by) => {
      try {
        this.find(by, '', 1);
        return [];
      } catch (error) {
        const { cause } = error as { cause: Error };
        return [`passages cannot be looked up by ${by} (${cause.message})`];
      }
    });
  }

  /** The problems that SQLite's integrity check of every page finds. */
  integrityProblems(): string[] {
    try {
      const lines = this.#database.pragma('integrity_check', { simple: false }) as { integrity_check: string }[];
      return lines.map((line) => line.integrity_check).filter((line) => line !== 'ok');
    } catch (error) {
      // With some kinds of damage, the check itself fails.
      return [(error as Error).message];
    }
  }

  /** @throws TrawlError FILE_CHANGED if a served file is no longer what it was when it was opened: what was read may be wrong. */
  requireUnchanged(): void {
    this.#watch.requireUnchanged();
  }

  close(): void {
    this.#watch.close();
    this.#database.close();
  }

  /** A statement whose rows are their first column, prepared once. */
  #statement(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql).pluck();
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #first<T>(sql: string, ...values: readonly unknown[]): T {
    return this.#reading(() => this.#statement(sql).get(...values) as T);
  }

  #all<T>(sql: string, ...values: readonly unknown[]): T[] {
    return this.#reading(() => this.#statement(sql).all(...values) as T[]);
  }

  #reading<T>(read: () => T): T {
    try {
      return read();
    } catch (cause) {
      throw this.#unreadable(cause);
    }
  }

  #streamRows<T>(columns: string, order: string): Generator<T, void> {
    return this.#stream(this.#database.prepare(`SELECT ${columns} FROM passages ${order}`).safeIntegers().raw());
  }

  /** `#reading` for a statement with many rows. */
  *#stream<T>(statement: Database.Statement): Generator<T, void> {
    try {
      yield* statement.iterate() as IterableIterator<T>;
    } catch (cause) {
      throw this.#unreadable(cause);
    }
  }

  #unreadable(cause: unknown): TrawlError {
    return new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${this.#path}: cannot be read (${(cause as Error).message}). Run trawl verify for details; copy or build the file again.`,
      { cause },
    );
  }
}

/**
 * The 64-bit integer that is written as this text, or null. An id is named by its text, and an integer has one text: `007`, `+7` and `-0`
 * name only the ids that are these texts.
 */
export function integerKey(by: Lookup, key: string): bigint | null {
  if ((by !== 'id' && by !== 'document') || !/^(?:0|-?[1-9]\d{0,18})$/.test(key)) return null;
  const integer = BigInt(key);
  return BigInt.asIntN(64, integer) === integer ? integer : null;
}

/** Version of the SQLite library in use. */
export function sqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    return database.prepare('SELECT sqlite_version()').pluck().get() as string;
  } finally {
    database.close();
  }
}
