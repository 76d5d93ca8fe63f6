import { createHash, type Hash } from 'node:crypto';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { PASSAGE_APPLICATION_ID, PASSAGE_INDEXES, PASSAGE_SCHEMA_VERSION, PASSAGE_TABLES } from './schema.ts';

export interface PassageToStore {
  readonly id: string | number | bigint | null;
  readonly line: number;
  /** JSON text of the corpus row. */
  readonly document: string;
}

export interface DuplicateId {
  readonly id: string;
  /** Rows that have it, ascending. */
  readonly rows: readonly number[];
  /** Their lines in the corpus. */
  readonly lines: readonly number[];
}

export interface Duplicates {
  /** Number of passages whose id an earlier passage already has. */
  readonly count: number;
  /** The first few repeated ids. */
  readonly examples: readonly DuplicateId[];
}

const ROWS_PER_TRANSACTION = 10_000;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Appends passages to a new passage file. Row numbers are given in the order of appending. */
export class SqlitePassageWriter {
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #insert: Database.Statement;
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;
  #rowsWithoutId = 0;

  /** The file must not exist. */
  constructor(path: string) {
    this.#path = path;
    this.#database = new Database(path);
    // The file counts only once its shard's manifest names it, so a crash loses nothing that a journal would save.
    this.#database.pragma('journal_mode = OFF');
    this.#database.pragma('synchronous = OFF');
    this.#database.pragma('cache_size = -65536');
    this.#database.pragma(`application_id = ${PASSAGE_APPLICATION_ID}`);
    this.#database.pragma(`user_version = ${PASSAGE_SCHEMA_VERSION}`);
    this.#database.exec(PASSAGE_TABLES);
    this.#insert = this.#database.prepare('INSERT INTO passages (row, id, line, document) VALUES (?, ?, ?, ?)');
    this.#database.exec('BEGIN');
  }

  get rows(): number {
    return this.#rows;
  }

  /** Passages that have no id: replies show them, but nothing can refer to them. */
  get rowsWithoutId(): number {
    return this.#rowsWithoutId;
  }

  append({ id, line, document }: PassageToStore): void {
    this.#insert.run(this.#rows, sqliteId(id), line, document);
    this.#hash.update(document).update('\n');
    this.#rows++;
    if (id === null) this.#rowsWithoutId++;
    if (this.#rows % ROWS_PER_TRANSACTION === 0) this.#database.exec('COMMIT; BEGIN');
  }

  /** Ends appending: writes the indexes for look-ups and the content hash. Returns that hash, hex. */
  finishRows(): string {
    const sha256 = this.#hash.digest('hex');
    this.#database.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run('sha256', sha256);
    this.#database.exec('COMMIT');
    this.#database.exec(PASSAGE_INDEXES);
    return sha256;
  }

  /** After `finishRows`. Memory does not grow with the corpus: SQLite walks the index over ids. */
  duplicates(exampleCount = 10): Duplicates {
    const { total, distinct } = this.#database
      .prepare(
        'SELECT coalesce(sum(n), 0) AS total, count(*) AS "distinct" ' +
          'FROM (SELECT count(*) AS n FROM passages WHERE id IS NOT NULL GROUP BY id)',
      )
      .get() as { total: number; distinct: number };
    if (total === distinct) return { count: 0, examples: [] };
    const repeated = this.#database
      .prepare('SELECT id FROM passages WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1 ORDER BY min(row) LIMIT ?')
      .safeIntegers()
      .pluck()
      .all(exampleCount) as (string | bigint)[];
    const places = this.#database.prepare('SELECT row, line FROM passages WHERE id = ? ORDER BY row LIMIT 5');
    const examples = repeated.map((id) => {
      const found = places.all(id) as { row: number; line: number }[];
      return { id: String(id), rows: found.map(({ row }) => row), lines: found.map(({ line }) => line) };
    });
    return { count: total - distinct, examples };
  }

  /** The documents of rows [first, first + count), for the encoding that follows. */
  documents(first: number, count: number): string[] {
    return this.#database
      .prepare('SELECT document FROM passages WHERE row >= ? AND row < ? ORDER BY row')
      .pluck()
      .all(first, first + count) as string[];
  }

  /** Closes the database and makes the file durable. */
  finish(): void {
    this.#database.close();
    const file = openSync(this.#path, 'r');
    fsyncSync(file);
    closeSync(file);
  }

  /** Closes without finishing: after an error. */
  abandon(): void {
    if (this.#database.open) this.#database.close();
  }
}

function sqliteId(id: PassageToStore['id']): string | bigint | null {
  if (id === null || typeof id === 'string') return id;
  // A JavaScript number would be bound as REAL; only bigint is bound as INTEGER.
  const integer = BigInt(id);
  return integer >= INT64_MIN && integer <= INT64_MAX ? integer : String(integer);
}
