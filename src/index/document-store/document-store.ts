import Database from 'better-sqlite3';
import { bug } from '../../base/errors.ts';
import type { Operation, Outcome, StoredDocument } from './operations.ts';

/** The bytes "TRWD". */
const APPLICATION_ID = 0x54525744;
const SCHEMA_VERSION = 1;

/**
 * A row is the last change of an id. A deleted document keeps a row without a source, so that the next refresh removes the document from
 * the index, and a new document with the id continues its versions.
 */
const TABLES = `CREATE TABLE documents (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL,
  source TEXT
) STRICT`;

interface Row {
  readonly seq: number;
  readonly version: number;
  readonly source: string | null;
}

/** The documents of an index that is written over HTTP, in one SQLite file. What `apply` returns is on the disk. */
export class DocumentStore {
  readonly #database: Database.Database;
  readonly #find: Database.Statement<[string], Row>;
  readonly #remove: Database.Statement<[number]>;
  readonly #insert: Database.Statement<[number, string, number, string | null]>;
  #lastSeqNo: number;

  /** Creates the file if it does not exist. */
  constructor(path: string) {
    this.#database = new Database(path);
    try {
      // A refresh reads in another process while this one writes. With `FULL`, a transaction has ended when it is on the disk.
      this.#database.pragma('journal_mode = WAL');
      this.#database.pragma('synchronous = FULL');
      prepare(this.#database, path);
      this.#find = this.#database.prepare('SELECT seq, version, source FROM documents WHERE id = ?');
      this.#remove = this.#database.prepare('DELETE FROM documents WHERE seq = ?');
      this.#insert = this.#database.prepare('INSERT INTO documents (seq, id, version, source) VALUES (?, ?, ?, ?)');
      this.#lastSeqNo = lastSeqNo(this.#database);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Number of the last change; -1 before the first. */
  get lastSeqNo(): number {
    return this.#lastSeqNo;
  }

  /** Does all operations in one transaction. @throws errors of SQLite; nothing is changed then. */
  apply(operations: readonly Operation[]): Outcome[] {
    try {
      return this.#database.transaction(() => operations.map((operation) => this.#applyOne(operation)))();
    } catch (error) {
      this.#lastSeqNo = lastSeqNo(this.#database);
      throw error;
    }
  }

  get(id: string): StoredDocument | undefined {
    const row = this.#find.get(id);
    return row === undefined || row.source === null
      ? undefined
      : { version: row.version, seqNo: row.seq, source: row.source };
  }

  close(): void {
    this.#database.close();
  }

  #applyOne({ action, id, source }: Operation): Outcome {
    const before = this.#find.get(id);
    const exists = before !== undefined && before.source !== null;
    if (action === 'create' && exists) return { failure: versionConflict(id, before.version) };
    const seqNo = ++this.#lastSeqNo;
    const version = (before?.version ?? 0) + 1;
    if (before !== undefined) this.#remove.run(before.seq);
    this.#insert.run(seqNo, id, version, source ?? null);
    if (action === 'delete') return { result: exists ? 'deleted' : 'not_found', version, seqNo };
    return { result: exists ? 'updated' : 'created', version, seqNo };
  }
}

/** Reads the documents of a store while another process writes to it. All reads see the store as it was at the first. */
export class StoreSnapshot {
  readonly lastSeqNo: number;
  readonly #database: Database.Database;

  constructor(path: string) {
    this.#database = new Database(path, { readonly: true, fileMustExist: true });
    this.#database.exec('BEGIN');
    this.lastSeqNo = lastSeqNo(this.#database);
  }

  /** The documents whose last change is later than `seqNo`, in the order of these changes. A deleted one has no source. */
  changesAfter(seqNo: number): IterableIterator<{ readonly id: string; readonly source: string | null }> {
    return this.#database
      .prepare<[number], { id: string; source: string | null }>(
        'SELECT id, source FROM documents WHERE seq > ? ORDER BY seq',
      )
      .iterate(seqNo);
  }

  close(): void {
    this.#database.close();
  }
}

function prepare(database: Database.Database, path: string): void {
  const version = database.pragma('user_version', { simple: true });
  const application = database.pragma('application_id', { simple: true });
  if (application === APPLICATION_ID && version === SCHEMA_VERSION) return;
  if (application !== 0 || version !== 0) throw bug(`${path} is not a file of documents of this version`);
  database.transaction(() => {
    database.exec(TABLES);
    database.pragma(`application_id = ${APPLICATION_ID}`);
    database.pragma(`user_version = ${SCHEMA_VERSION}`);
  })();
}

function lastSeqNo(database: Database.Database): number {
  return database.prepare('SELECT coalesce(max(seq), -1) FROM documents').pluck().get() as number;
}

function versionConflict(id: string, version: number) {
  return {
    status: 409,
    type: 'version_conflict_engine_exception',
    reason: `[${id}]: version conflict, document already exists (current version [${version}])`,
  };
}
