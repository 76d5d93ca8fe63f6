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

/** Appends passages to a new passage file. Row numbers are given in the order of appending. */
export class SqlitePassageWriter {
  readonly #path: string;
  readonly #database: Database.Database;
  readonly #insert: Database.Statement;
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;
  #rowsWithoutId = 0;

  /** The file must not exist. What a process that died left of one is of no use, as there is no journal. */
  constructor(path: string) {
    this.#path = path;
    this.#database = new Database(path);
    // The file counts only once it is complete, so a crash loses nothing that a journal on the disk would save.
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

  /** Closes the database and makes the file durable. */
  finish(): void {
    this.#database.close();
    const file = openSync(this.#path, 'r');
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
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
