import Database from 'better-sqlite3';
import type { StoredAnswer } from './stored-answer.ts';

/** A passage of a recorded answer. */
interface CollectedPassage {
  /** Row in the index. */
  readonly row: number;
  /** Its id in the record, as text; null if it has none. */
  readonly id: string | null;
}

/** Keys per transaction. */
const RECORDS_PER_TRANSACTION = 10_000;
/** Entries read at once. */
const PAGE = 512;

/**
 * Collects the distinct answers of records and their passages in a temporary file, so that memory does not depend on their number. The
 * content depends on the records alone, not on their order, unless they contradict each other.
 */
export class AnswerCollector {
  readonly #database: Database.Database;
  readonly #find: Database.Statement;
  readonly #put: Database.Statement;
  readonly #putRow: Database.Statement;
  #records = 0;
  #contradicting = 0;

  /** The file must not exist. */
  constructor(path: string) {
    this.#database = new Database(path);
    // A stopped run begins again, so the file needs no journal on the disk.
    this.#database.pragma('journal_mode = OFF');
    this.#database.pragma('synchronous = OFF');
    this.#database.exec(`
      CREATE TABLE answers (id TEXT PRIMARY KEY, answer TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE passages (row INTEGER PRIMARY KEY, id TEXT) STRICT;
    `);
    this.#find = this.#database.prepare('SELECT answer FROM answers WHERE id = ?').pluck();
    this.#put = this.#database.prepare('INSERT OR REPLACE INTO answers (id, answer) VALUES (?, ?)');
    this.#putRow = this.#database.prepare('INSERT OR IGNORE INTO passages (row, id) VALUES (?, ?)');
    this.#database.exec('BEGIN');
  }

  /** Records whose hits differ from an earlier record of the same search. The first record stays. */
  get contradicting(): number {
    return this.#contradicting;
  }

  /** `ids`: one per row of the answer. Of equal searches, the answer with the largest k is kept. */
  add(id: string, answer: StoredAnswer, ids: readonly (string | null)[]): void {
    const known = this.#find.get(id) as string | undefined;
    const before = known === undefined ? undefined : (JSON.parse(known) as StoredAnswer);
    if (before !== undefined && !agree(before, answer)) {
      this.#contradicting++;
      return;
    }
    if (before === undefined || isBetter(answer, before)) this.#put.run(id, JSON.stringify(answer));
    for (const [i, row] of answer.rows.entries()) this.#putRow.run(row, ids[i]);
    if (++this.#records % RECORDS_PER_TRANSACTION === 0) this.#database.exec('COMMIT; BEGIN');
  }

  /** The passages in the order of their rows, in pages. */
  *passages(): Generator<readonly CollectedPassage[], void> {
    const page = this.#database.prepare('SELECT row, id FROM passages WHERE row > ? ORDER BY row LIMIT ?');
    for (let last = -1; ; ) {
      const found = page.all(last, PAGE) as CollectedPassage[];
      if (found.length === 0) return;
      yield found;
      last = found.at(-1)!.row;
    }
  }

  /** The answers in the order of their ids, as JSON. */
  *answers(): Generator<{ readonly id: string; readonly answer: string }, void> {
    const page = this.#database.prepare('SELECT id, answer FROM answers WHERE id > ? ORDER BY id LIMIT ?');
    for (let last = ''; ; ) {
      const found = page.all(last, PAGE) as { id: string; answer: string }[];
      if (found.length === 0) return;
      yield* found;
      last = found.at(-1)!.id;
    }
  }

  close(): void {
    this.#database.close();
  }
}

/** Whether both answers begin with the same hits. */
function agree(a: StoredAnswer, b: StoredAnswer): boolean {
  const common = Math.min(a.k, b.k);
  const [one, other] = [a, b].map(({ rows, scores }) =>
    JSON.stringify([rows.slice(0, common), scores.slice(0, common)]),
  );
  return one === other;
}

/** A larger k is better; of equal ones, one with facts; then the lower text, so that the order of the records does not matter. */
function isBetter(answer: StoredAnswer, before: StoredAnswer): boolean {
  if (answer.k !== before.k) return answer.k > before.k;
  if ((answer.facts === null) !== (before.facts === null)) return before.facts === null;
  return JSON.stringify(answer) < JSON.stringify(before);
}
