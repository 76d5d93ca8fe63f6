import Database from 'better-sqlite3';
import { TrawlError } from '../../base/errors.ts';
import { checkPassageFile } from './passage-file-header.ts';
import { LOOKUP_KEYS, LOOKUPS, type Lookup, lookupIndex } from './schema.ts';

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
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #one: Database.Statement;
  readonly #range: Database.Statement;
  #idOfRow: Database.Statement | undefined;
  #idsOfRange: Database.Statement | undefined;
  #keyedRange: Database.Statement | undefined;
  readonly #finders = new Map<Lookup, Database.Statement>();
  /** Content hash recorded by the writer, in hex. */
  readonly sha256: string | undefined;

  /**
   * `mapped` reads through a memory map, which is faster for random rows but counts as memory of this process.
   *
   * @throws TrawlError as `checkPassageFile`; INDEX_FILE_FOREIGN also if SQLite cannot read the tables.
   */
  constructor(path: string, { mapped = true }: { mapped?: boolean } = {}) {
    checkPassageFile(path);
    this.#path = path;
    this.#database = new Database(path, { readonly: true, fileMustExist: true });
    try {
      if (mapped) this.#database.pragma('mmap_size = 1073741824');
      this.#one = this.#database.prepare('SELECT document FROM passages WHERE row = ?').pluck();
      this.#range = this.#database
        .prepare('SELECT document FROM passages WHERE row >= ? AND row < ? ORDER BY row')
        .pluck();
      const meta = this.#database.prepare("SELECT value FROM meta WHERE key = 'sha256'").pluck();
      this.sha256 = meta.get() as string | undefined;
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
    const rows = this.#database.prepare('SELECT coalesce(max(row) + 1, 0) FROM passages').pluck();
    return this.#reading(() => rows.get() as number);
  }

  /** JSON text of a row's document; undefined for a row that does not exist. */
  document(row: number): string | undefined {
    return this.#reading(() => this.#one.get(row) as string | undefined);
  }

  /** The id of a row as text, null for a row without one, undefined for a row that does not exist. Integers are exact. */
  id(row: number): string | null | undefined {
    this.#idOfRow ??= this.#database.prepare('SELECT CAST(id AS TEXT) FROM passages WHERE row = ?').pluck();
    const statement = this.#idOfRow;
    return this.#reading(() => statement.get(row) as string | null | undefined);
  }

  /**
   * Rows with this key, ascending, at most `limit`. The key of an integer id, of a passage or a document, is its decimal text.
   *
   * @throws TrawlError NOT_SUPPORTED if the file was built without that look-up.
   */
  find(by: Lookup, key: string, limit: number): number[] {
    const finder = this.#finder(by);
    return this.#reading(() => finder.all(key, integerKey(by, key), limit) as number[]);
  }

  #finder(by: Lookup): Database.Statement {
    const known = this.#finders.get(by);
    if (known !== undefined) return known;
    const index = lookupIndex(by);
    if (!this.has(by)) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `This index cannot look up passages by ${by}. Build it again with this version.`,
        { details: { by } },
      );
    }
    // INDEXED BY, so that the planner never chooses to scan the whole file.
    const finder = this.#database
      .prepare(`SELECT row FROM passages INDEXED BY ${index} WHERE ${LOOKUP_KEYS[by]} IN (?, ?) ORDER BY row LIMIT ?`)
      .pluck();
    this.#finders.set(by, finder);
    return finder;
  }

  /** Streams all documents in row order. */
  documents(): Generator<string, void> {
    return this.#streaming(this.#database.prepare('SELECT document FROM passages ORDER BY row').pluck());
  }

  /** Streams the id of every row in row order; null for a row without one. */
  ids(): Generator<StoredId | null, void> {
    return this.#streaming(this.#database.prepare('SELECT id FROM passages ORDER BY row').pluck().safeIntegers());
  }

  /** Streams all rows in order. */
  *passages(): Generator<{ row: number; id: StoredId | null; line: number; document: string }, void> {
    const rows = this.#database
      .prepare('SELECT row, id, line, document FROM passages ORDER BY row')
      .safeIntegers()
      .raw();
    for (const [row, id, line, document] of this.#streaming<[bigint, StoredId | null, bigint, string]>(rows)) {
      yield { row: Number(row), id, line: Number(line), document };
    }
  }

  /** The existing rows among [first, first + count), with the values that look-ups compare. */
  keyedRange(first: number, count: number): KeyedRow[] {
    const keys = LOOKUPS.map((by) => `${LOOKUP_KEYS[by]} AS key_${by}`).join(', ');
    this.#keyedRange ??= this.#database
      .prepare(
        `SELECT row, document, CAST(id AS TEXT) AS idText, ${keys} FROM passages WHERE row >= ? AND row < ? ORDER BY row`,
      )
      .safeIntegers();
    const statement = this.#keyedRange;
    return this.#reading(() =>
      (statement.all(first, first + count) as Record<string, StoredId | number | null>[]).map((found) => ({
        row: Number(found.row),
        document: found.document as string,
        id: found.idText as string | null,
        keys: Object.fromEntries(LOOKUPS.map((by) => [by, found[`key_${by}`]!])) as KeyedRow['keys'],
      })),
    );
  }

  /** Bytes of the longest document, as UTF-8; 0 without rows. Reads the whole file. */
  longestDocument(): number {
    const longest = this.#database
      .prepare('SELECT coalesce(max(length(CAST(document AS BLOB))), 0) FROM passages')
      .pluck();
    return this.#reading(() => longest.get() as number);
  }

  /** Whether the file was built with that look-up. */
  has(by: Lookup): boolean {
    const has = this.#database.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?").pluck();
    return this.#reading(() => has.get(lookupIndex(by))) !== 0;
  }

  /** The documents of the existing rows among [first, first + count). */
  range(first: number, count: number): string[] {
    return this.#reading(() => this.#range.all(first, first + count) as string[]);
  }

  /** As `id`, for the existing rows among [first, first + count): much cheaper than one after another. */
  idRange(first: number, count: number): (string | null)[] {
    this.#idsOfRange ??= this.#database
      .prepare('SELECT CAST(id AS TEXT) FROM passages WHERE row >= ? AND row < ? ORDER BY row')
      .pluck();
    const statement = this.#idsOfRange;
    return this.#reading(() => statement.all(first, first + count) as (string | null)[]);
  }

  /** The row's line in the corpus file. */
  line(row: number): number {
    const line = this.#database.prepare('SELECT line FROM passages WHERE row = ?').pluck();
    return this.#reading(() => line.get(row) as number);
  }

  /** Passages with the id of an earlier passage of this file. */
  repeatedIds(): number {
    const repeated = this.#database
      .prepare(
        'SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM passages WHERE id IS NOT NULL GROUP BY id)',
      )
      .pluck();
    return this.#reading(() => repeated.get() as number);
  }

  rowsWithId(): number {
    const counted = this.#database.prepare('SELECT count(*) FROM passages WHERE id IS NOT NULL').pluck();
    return this.#reading(() => counted.get() as number);
  }

  /** Streams all ids with their rows, by id in SQLite's order, then by row. */
  *idsInOrder(): Generator<{ id: StoredId; row: number }, void> {
    const ids = this.#database
      .prepare('SELECT id, row FROM passages WHERE id IS NOT NULL ORDER BY id, row')
      .safeIntegers()
      .raw();
    for (const [id, row] of this.#streaming<[StoredId, bigint]>(ids)) yield { id, row: Number(row) };
  }

  /** Describes the look-ups that fail. SQLite's integrity check does not detect an index over another expression. */
  brokenLookups(): string[] {
    return LOOKUPS.flatMap((by) => {
      try {
        this.find(by, '', 1);
        return [];
      } catch (error) {
        // Older files lack some look-ups.
        if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return [];
        return [`passages cannot be looked up by ${by} (${(error as Error).message})`];
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

  close(): void {
    this.#database.close();
  }

  #reading<T>(read: () => T): T {
    try {
      return read();
    } catch (cause) {
      throw this.#unreadable(cause);
    }
  }

  /** `#reading` for a statement with many rows. */
  *#streaming<T>(statement: Database.Statement): Generator<T, void> {
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

/** The 64-bit integer that an id's text stands for, or null. */
export function integerKey(by: Lookup, key: string): bigint | null {
  if ((by !== 'id' && by !== 'document') || !/^-?\d{1,19}$/.test(key)) return null;
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
