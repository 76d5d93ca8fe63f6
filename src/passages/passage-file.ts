import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { TrawlError } from '../errors.ts';
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
 * Tells from its header and size alone whether a passage file is whole and ours.
 *
 * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED.
 */
export function checkPassageFile(path: string): void {
  const header = new Uint8Array(HEADER_BYTES);
  let fileBytes: number;
  let headerBytes: number;
  try {
    // Opening a pipe would wait for ever.
    if (!statSync(path).isFile()) throw new Error('it is no regular file');
    const file = openSync(path, 'r');
    try {
      fileBytes = fstatSync(file).size;
      headerBytes = readSync(file, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw new TrawlError(
      'INDEX_FILE_MISSING',
      `${path}: cannot be read (${(cause as Error).message}). Restore the file or build the index again.`,
      {
        cause,
      },
    );
  }
  if (headerBytes < HEADER_BYTES) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: ${fileBytes} bytes are no SQLite file. Copy or build it again.`,
    );
  }
  const view = new DataView(header.buffer);
  if (new TextDecoder('latin1').decode(header.subarray(0, MAGIC.length)) !== MAGIC) {
    throw new TrawlError('INDEX_FILE_FOREIGN', `${path}: is not a SQLite file.`);
  }
  if (view.getUint32(OFFSET.applicationId) !== PASSAGE_APPLICATION_ID) {
    throw new TrawlError('INDEX_FILE_FOREIGN', `${path}: is a SQLite file, but not one with passages of an index.`);
  }
  const version = view.getUint32(OFFSET.userVersion);
  if (version !== PASSAGE_SCHEMA_VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${path}: has passage table version ${version}; this program reads version ${PASSAGE_SCHEMA_VERSION}.`,
    );
  }
  const pageSize = view.getUint16(OFFSET.pageSize) === 1 ? 65_536 : view.getUint16(OFFSET.pageSize);
  const expected = view.getUint32(OFFSET.pageCount) * pageSize;
  if (fileBytes !== expected) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: ${fileBytes} bytes, but its header says ${expected}. Copy or build it again.`,
    );
  }
}

/** An id as the table holds it. */
export type StoredId = string | bigint;

/** A finished passage file opened for reading. The one place that does so: in worker threads and one-off tools. */
export class PassageFile {
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #one: Database.Statement;
  readonly #range: Database.Statement;
  readonly #finders = new Map<Lookup, Database.Statement>();
  /** The content hash its writer recorded, hex. */
  readonly sha256: string | undefined;

  /**
   * `mapped` reads through a memory map: fast at random rows, and counted as this process's memory.
   *
   * @throws the errors of `checkPassageFile`; INDEX_FILE_FOREIGN also where SQLite cannot read its tables.
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

  /** @throws TrawlError INDEX_FILE_FOREIGN where a page of the file is damaged. */
  get rows(): number {
    const rows = this.#database.prepare('SELECT coalesce(max(row) + 1, 0) FROM passages').pluck();
    return this.#reading(() => rows.get() as number);
  }

  /**
   * JSON text of a row's document; undefined where there is no such row.
   *
   * @throws TrawlError INDEX_FILE_FOREIGN where a page of the file is damaged.
   */
  document(row: number): string | undefined {
    return this.#reading(() => this.#one.get(row) as string | undefined);
  }

  /**
   * Rows of which the key is `key`, ascending, at most `limit`. An id may be a text or an integer written in decimal.
   *
   * @throws TrawlError NOT_SUPPORTED where the file was made without that look-up; INDEX_FILE_FOREIGN where it is damaged.
   */
  find(by: Lookup, key: string, limit: number): number[] {
    const finder = this.#finder(by);
    const rows = this.#reading(() => finder.all(key, integerKey(by, key), limit) as number[]);
    return rows;
  }

  #finder(by: Lookup): Database.Statement {
    const known = this.#finders.get(by);
    if (known !== undefined) return known;
    const index = lookupIndex(by);
    const has = this.#database.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?").pluck();
    if (this.#reading(() => has.get(index)) === 0) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `The index was built without a look-up of passages by ${by}. Build it again with this version to have one.`,
        { details: { by } },
      );
    }
    // Without INDEXED BY a planner that changes its mind would read the whole file.
    const finder = this.#database
      .prepare(`SELECT row FROM passages INDEXED BY ${index} WHERE ${LOOKUP_KEYS[by]} IN (?, ?) ORDER BY row LIMIT ?`)
      .pluck();
    this.#finders.set(by, finder);
    return finder;
  }

  /** All documents in row order, without holding them. */
  documents(): IterableIterator<string> {
    return this.#database
      .prepare('SELECT document FROM passages ORDER BY row')
      .pluck()
      .iterate() as IterableIterator<string>;
  }

  /** The id of every row in row order, null where it has none, without holding them. */
  *ids(): Generator<StoredId | null, void> {
    const ids = this.#database.prepare('SELECT id FROM passages ORDER BY row').pluck().safeIntegers();
    yield* ids.iterate() as IterableIterator<StoredId | null>;
  }

  /** All rows in order with id and line, without holding them. */
  *passages(): Generator<{ row: number; id: StoredId | null; line: number; document: string }, void> {
    const rows = this.#database
      .prepare('SELECT row, id, line, document FROM passages ORDER BY row')
      .safeIntegers()
      .raw();
    for (const [row, id, line, document] of rows.iterate() as IterableIterator<
      [bigint, StoredId | null, bigint, string]
    >) {
      yield { row: Number(row), id, line: Number(line), document };
    }
  }

  /** The documents of rows [first, first + count) that there are. */
  range(first: number, count: number): string[] {
    return this.#reading(() => this.#range.all(first, first + count) as string[]);
  }

  /** The line of the corpus file that a row comes from. */
  line(row: number): number {
    return this.#database.prepare('SELECT line FROM passages WHERE row = ?').pluck().get(row) as number;
  }

  /** Passages whose id an earlier one of this file has. */
  repeatedIds(): number {
    const repeated = this.#database.prepare(
      'SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM passages WHERE id IS NOT NULL GROUP BY id)',
    );
    return repeated.pluck().get() as number;
  }

  rowsWithId(): number {
    return this.#database.prepare('SELECT count(*) FROM passages WHERE id IS NOT NULL').pluck().get() as number;
  }

  /** Every id with its row, in SQLite's order of ids and then by row, without holding them. */
  *idsInOrder(): Generator<{ id: StoredId; row: number }, void> {
    const ids = this.#database
      .prepare('SELECT id, row FROM passages WHERE id IS NOT NULL ORDER BY id, row')
      .safeIntegers()
      .raw();
    for (const [id, row] of ids.iterate() as IterableIterator<[StoredId, bigint]>) yield { id, row: Number(row) };
  }

  /** Look-ups that cannot be made, with the reason: SQLite finds an index sound whose expression is not the one looked for. */
  brokenLookups(): string[] {
    return LOOKUPS.flatMap((by) => {
      try {
        this.find(by, '', 1);
        return [];
      } catch (error) {
        // Files of the first release have a look-up by id alone.
        if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return [];
        return [`passages cannot be looked up by ${by} (${(error as Error).message})`];
      }
    });
  }

  /** SQLite's own check of every page; the problems found, empty when there are none. */
  integrityProblems(): string[] {
    try {
      const lines = this.#database.pragma('integrity_check', { simple: false }) as { integrity_check: string }[];
      return lines.map((line) => line.integrity_check).filter((line) => line !== 'ok');
    } catch (error) {
      // Some damage is not reported but stops the check.
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
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${this.#path}: cannot be read (${(cause as Error).message}). trawl verify tells more; copy or build it again.`,
        { cause },
      );
    }
  }
}

/** The integer that an id's text may stand for; null where it stands for none. */
function integerKey(by: Lookup, key: string): bigint | null {
  if (by !== 'id' || !/^-?\d{1,19}$/.test(key)) return null;
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
