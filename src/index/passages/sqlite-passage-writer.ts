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

const ROWS_PER_TRANSACTION = 10_000;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Writes a new passage file. Rows are numbered in the order of appending. */
export class SqlitePassageWriter {
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #insert: Database.Statement;
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;
  #rowsWithoutId = 0;

  /** The file must not exist. A file left by a killed process is unusable, because it has no journal. */
  constructor(path: string) {
    this.#path = path;
    this.#database = new Database(path);
    // An incomplete file is discarded anyway, so it needs no journal on the disk.
    this.#database.pragma('journal_mode = MEMORY');
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

  /** Passages without an id. Searches return them, look-ups do not. */
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

  /** Writes the look-up indexes and the content hash after the last row. Returns the hash in hex. */
  finishRows(): string {
    const sha256 = this.#hash.digest('hex');
    this.#database.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run('sha256', sha256);
    this.#database.exec('COMMIT');
    this.#database.exec(PASSAGE_INDEXES);
    return sha256;
  }

  /** Closes the database and syncs the file to the disk. */
  finish(): void {
    this.#database.close();
    const file = openSync(this.#path, 'r');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  }

  /** Closes an unfinished file after an error. */
  abandon(): void {
    if (this.#database.open) this.#database.close();
  }
}

function sqliteId(id: PassageToStore['id']): string | bigint | null {
  if (id === null || typeof id === 'string') return id;
  // better-sqlite3 binds a number as REAL and a bigint as INTEGER.
  const integer = BigInt(id);
  return integer >= INT64_MIN && integer <= INT64_MAX ? integer : String(integer);
}
