import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { comparableText } from '../../src/base/comparable-text.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { findQuestion, type WantedQuestion } from '../records/known-questions.ts';
import { groupKey, type MiningQuery, queryKey, textKey } from './mined-query.ts';

export interface StoredQuery {
  /** From 0, in the order of the input. */
  readonly place: number;
  readonly key: string;
  readonly group: string;
  readonly query: MiningQuery;
  /** Ids of the positives of other queries with the same question or the same text. */
  readonly siblingIds: readonly string[];
}

const TABLES = `
  CREATE TABLE query (place INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
  CREATE TABLE positive (scope TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (scope, id)) WITHOUT ROWID;
  CREATE TABLE qrel (query TEXT NOT NULL, passage TEXT NOT NULL, PRIMARY KEY (query, passage));
  CREATE TABLE judged (question TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE judged_id (id TEXT NOT NULL, dataset TEXT NOT NULL, question TEXT NOT NULL, PRIMARY KEY (id, dataset, question)) WITHOUT ROWID;
  CREATE TABLE excluded (text TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

/**
 * The queries of a run and how far it is: an SQLite file beside the output, so that memory does not grow with the input, and a
 * killed run resumes. It is locked while it is open, so that only one run writes an output.
 */
export class WorkFile {
  readonly path: string;
  readonly #database: Database.Database;

  /** `mode`: permissions of a new file. @throws TrawlError OUTPUT_EXISTS if another run has it open, OUTPUT_NOT_WRITABLE. */
  constructor(path: string, mode?: number) {
    this.path = path;
    if (!existsSync(dirname(path))) {
      throw new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written: its folder does not exist.`);
    }
    try {
      // SQLite gives its journal the permissions of the file.
      if (mode !== undefined) closeSync(openSync(path, 'a', mode));
      this.#database = new Database(path, { timeout: 0 });
      this.#database.pragma('locking_mode = EXCLUSIVE');
      this.#database.pragma('synchronous = FULL');
      this.#database.exec('BEGIN EXCLUSIVE; COMMIT');
    } catch (error) {
      if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY') !== true) throw writeFailure(error, path);
      throw new TrawlError('OUTPUT_EXISTS', `Another run has ${path} open. Wait for it, or choose another output.`, {
        cause: error,
      });
    }
  }

  clear(): void {
    const names = this.#database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
    this.#database.exec(`BEGIN; ${names.map((name) => `DROP TABLE "${String(name)}";`).join(' ')} ${TABLES} COMMIT`);
  }

  /** Runs `fill` in one transaction: a killed run leaves nothing of it. */
  async fill(fill: () => Promise<void>): Promise<void> {
    this.#database.exec('BEGIN');
    try {
      await fill();
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.inTransaction) this.#database.exec('ROLLBACK');
      throw writeFailure(error, this.path);
    }
  }

  addJudgement(queryId: string, passageId: string): void {
    this.#statement('INSERT OR IGNORE INTO qrel VALUES (?, ?)').run(queryId, passageId);
  }

  /** The relevant passages of a query, in the order in which they were added. */
  judgementsOf(queryId: string): readonly string[] {
    return this.#statement('SELECT passage FROM qrel WHERE query = ? ORDER BY rowid').pluck().all(queryId) as string[];
  }

  /** Adds a judged question, to the positives and answers of an equal one if there is one. */
  addJudged(query: MiningQuery): void {
    const question = comparableText(query.question);
    const earlier = this.#judgedText(question);
    const body = earlier === undefined ? query : withJudgements(earlier, query);
    this.#statement('INSERT OR REPLACE INTO judged VALUES (?, ?)').run(question, JSON.stringify(body));
    this.#statement('INSERT OR IGNORE INTO judged_id VALUES (?, ?, ?)').run(query.id, query.dataset ?? '', question);
  }

  /** The judged question of a recorded query, as `findQuestion` says. */
  judged(wanted: WantedQuestion): MiningQuery | undefined {
    return findQuestion(
      { withId: (id) => this.#judgedWithId(id), withText: (comparable) => this.#judgedText(comparable) },
      wanted,
    );
  }

  #judgedWithId(id: string): readonly MiningQuery[] {
    const rows = this.#statement(
      'SELECT dataset, body FROM judged_id JOIN judged USING (question) WHERE id = ? ORDER BY dataset, question',
    ).all(id) as { dataset: string; body: string }[];
    return rows.map(({ dataset, body }) => {
      // An equal question may stand in the file under several ids and data sets.
      const query = JSON.parse(body) as MiningQuery;
      return { ...query, id, dataset: dataset === '' ? undefined : dataset };
    });
  }

  #judgedText(question: string): MiningQuery | undefined {
    const body = this.#statement('SELECT body FROM judged WHERE question = ?').pluck().get(question);
    return body === undefined ? undefined : (JSON.parse(body as string) as MiningQuery);
  }

  addExcluded(text: string): void {
    this.#statement('INSERT OR IGNORE INTO excluded VALUES (?)').run(text);
  }

  isExcluded(text: string): boolean {
    return this.#statement('SELECT 1 FROM excluded WHERE text = ?').get(text) !== undefined;
  }

  /** Adds a query. One with the question and query of an earlier one adds its positives and answers to that. Returns whether it is new. */
  addQuery(query: MiningQuery): boolean {
    const key = queryKey(query);
    for (const scope of [groupKey(query), textKey(query)]) {
      const insert = this.#statement('INSERT OR IGNORE INTO positive VALUES (?, ?)');
      for (const id of query.positiveIds) insert.run(scope, id);
    }
    const earlier = this.#statement('SELECT body FROM query WHERE key = ?').pluck().get(key) as string | undefined;
    if (earlier === undefined) {
      this.#statement('INSERT INTO query VALUES ((SELECT coalesce(max(place) + 1, 0) FROM query), ?, ?)').run(
        key,
        JSON.stringify(query),
      );
      return true;
    }
    const first = withJudgements(JSON.parse(earlier) as MiningQuery, query);
    this.#statement('UPDATE query SET body = ? WHERE key = ?').run(JSON.stringify(first), key);
    return false;
  }

  get queryCount(): number {
    return this.#statement('SELECT coalesce(max(place) + 1, 0) FROM query').pluck().get() as number;
  }

  queries(from: number, limit: number): readonly StoredQuery[] {
    const rows = this.#statement('SELECT place, key, body FROM query WHERE place >= ? ORDER BY place LIMIT ?').all(
      from,
      limit,
    ) as { place: number; key: string; body: string }[];
    const positives = this.#statement('SELECT DISTINCT id FROM positive WHERE scope IN (?, ?) ORDER BY id').pluck();
    return rows.map(({ place, key, body }) => {
      const query = JSON.parse(body) as MiningQuery;
      const group = groupKey(query);
      const own = new Set(query.positiveIds);
      const siblingIds = (positives.all(group, textKey(query)) as string[]).filter((id) => !own.has(id));
      return { place, key, group, query, siblingIds };
    });
  }

  /** A value that `save` stored; undefined before. */
  load<T>(name: string): T | undefined {
    const known = this.#database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'state'").get() !== undefined;
    const text = known ? this.#statement('SELECT value FROM state WHERE name = ?').pluck().get(name) : undefined;
    return text === undefined ? undefined : (JSON.parse(text as string) as T);
  }

  save(name: string, value: unknown): void {
    try {
      this.#statement('INSERT OR REPLACE INTO state VALUES (?, ?)').run(name, JSON.stringify(value));
    } catch (error) {
      throw writeFailure(error, this.path);
    }
  }

  close(): void {
    this.#database.close();
  }

  /** Removes the file, before it releases the lock. */
  remove(): void {
    rmSync(this.path, { force: true });
    this.#database.close();
    rmSync(`${this.path}-journal`, { force: true });
  }

  readonly #statements = new Map<string, Database.Statement>();

  #statement(sql: string): Database.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** A query with the positives and answers of another one, too. */
function withJudgements(first: MiningQuery, { positiveIds, answers }: MiningQuery): MiningQuery {
  return {
    ...first,
    positiveIds: [...new Set([...first.positiveIds, ...positiveIds])],
    answers: [...new Set([...first.answers, ...answers])],
  };
}
