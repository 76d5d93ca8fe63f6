import Database from 'better-sqlite3';
import type { StoredAnswer } from './stored-answer.ts';

const RECORDS_PER_TRANSACTION = 10_000;
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

  /** The passages in the order of their rows, in pages. `id`: as text in the record; null if it has none. */
  *passages() {
    const page = this.#database.prepare<[number, number], { readonly row: number; readonly id: string | null }>(
      'SELECT row, id FROM passages WHERE row > ? ORDER BY row LIMIT ?',
    );
    for (let last = -1; ; ) {
      const found = page.all(last, PAGE);
      if (found.length === 0) return;
      yield found;
      last = found.at(-1)!.row;
    }
  }

  /** The answers in the order of their ids, as JSON. Nothing else may be read or added meanwhile. */
  answers(): Iterable<{ readonly id: string; readonly answer: string }> {
    return this.#database
      .prepare<[], { id: string; answer: string }>('SELECT id, answer FROM answers ORDER BY id')
      .iterate();
  }

  close(): void {
    this.#database.close();
  }
}

function agree(a: StoredAnswer, b: StoredAnswer): boolean {
  const common = Math.min(a.k, b.k);
  const begin = ({ rows, scores }: StoredAnswer): string =>
    JSON.stringify([rows.slice(0, common), scores.slice(0, common)]);
  return begin(a) === begin(b);
}

/** A larger k is better; of equal ones, one with facts; then the lower text, so that the order of the records does not matter. */
function isBetter(answer: StoredAnswer, before: StoredAnswer): boolean {
  if (answer.k !== before.k) return answer.k > before.k;
  if ((answer.facts === null) !== (before.facts === null)) return before.facts === null;
  return JSON.stringify(answer) < JSON.stringify(before);
}
