import { parseJson } from '../corpus/parse-json.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { defined, isObject } from '../src/base/objects.ts';
import { plainTitle } from '../src/index/passages/document-fields.ts';
import type { Judgements } from './judgements.ts';

export interface Question {
  readonly id: string;
  readonly question: string;
  /** A search agent's query on the way to an answer. Absent: the question is the query. */
  readonly query?: string;
  /** Several queries for the question, searched each by itself. */
  readonly queries?: readonly string[];
  /** The agent's queries before this one, oldest first. */
  readonly history?: readonly string[];
  /** Which of the agent's searches for the question it is, as the file counts them. */
  readonly roundIndex?: number;
  readonly dataset?: string;
  /** Alternative correct answers. */
  readonly goldenAnswers?: readonly string[];
  readonly goldIds?: readonly string[];
  /** Titles of the relevant pages, for sets that judge pages, such as HotpotQA and KILT. */
  readonly goldTitles?: readonly string[];
  /** What sort of question it is, such as `bridge` or `comparison` in HotpotQA. */
  readonly type?: string;
}

/**
 * Reads a JSONL file of questions one by one, so that its size does not matter. Ids may repeat.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an invalid line, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* questionLines(file: string): AsyncGenerator<Question, void> {
  for await (const { number, text } of readTextLines(file))
    yield parseQuestion(text, (reason) => lineError(file, number, reason));
}

/**
 * Reads a JSONL file of questions, one `parseQuestion` a line, into memory.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an invalid line or a repeated id, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function readQuestions(file: string): Promise<Question[]> {
  const questions: Question[] = [];
  const lineOfId = new Map<string, number>();
  for await (const { number, text } of readTextLines(file)) {
    const question = parseQuestion(text, (reason) => lineError(file, number, reason));
    const first = lineOfId.get(question.id);
    if (first !== undefined) {
      throw lineError(file, number, `the id ${JSON.stringify(question.id)} is already used in line ${first}`);
    }
    lineOfId.set(question.id, number);
    questions.push(question);
  }
  return questions;
}

/** Judgements from `goldIds`, each with grade 1. Questions without `goldIds` are not judged. */
export function judgementsOf(questions: readonly Question[]): Judgements {
  const judged = questions.filter(({ goldIds }) => goldIds !== undefined && goldIds.length > 0);
  return new Map(judged.map(({ id, goldIds }) => [id, new Map(goldIds!.map((goldId) => [goldId, 1]))]));
}

/**
 * Judgements of pages from `goldTitles`: title key → grade 1. Questions without a title that has a key are not judged by page, since
 * passages without a title have the empty one.
 */
export function titleJudgementsOf(questions: readonly Question[]): Judgements {
  return new Map(
    questions.flatMap(({ id, goldTitles = [] }) => {
      const keys = goldTitles.map(titleKey).filter((key) => key !== '');
      return keys.length === 0 ? [] : [[id, new Map(keys.map((key) => [key, 1]))] as const];
    }),
  );
}

/**
 * The key by which titles of pages are compared: their plain spelling (`plainTitle`) without regard to case. Titles that differ in accents
 * are different pages. An empty key stands for no page.
 */
export function titleKey(title: string): string {
  return plainTitle(title).toLowerCase();
}

/** Golden answers that passages can be searched for, by the id of their question, for `evaluateRun`. Questions without such an answer have no entry. */
export function answersOf(questions: readonly Question[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    questions.flatMap(({ id, goldenAnswers = [] }) => {
      const answers = withoutLabels(goldenAnswers);
      return answers.length === 0 ? [] : [[id, answers] as const];
    }),
  );
}

export function withoutLabels(answers: readonly string[]): readonly string[] {
  return answers.filter((answer) => !isLabel(answer));
}

const FEVER_LABELS: readonly string[] = ['SUPPORTS', 'REFUTES', 'NOT ENOUGH INFO'];

/**
 * Whether an answer is yes or no, true or false, or a class of FEVER, which judges claims. Passages of any subject have these words, so
 * finding one says nothing.
 */
function isLabel(answer: string): boolean {
  return FEVER_LABELS.includes(answer.trim()) || /^\s*(yes|no|true|false)[\s.!]*$/i.test(answer);
}

/**
 * Parses a question: `{"id", "question", "query"?, "queries"?, "history_queries"?, "round_index"?, "dataset"?, "golden_answers"?,
 * "gold_ids"?, "gold_titles"?, "type"?}`, or BEIR's `{"_id", "text"}`. Ids are strings or integers of any size. Ignores other columns;
 * null counts as absent.
 *
 * @throws the error of `fail`.
 */
export function parseQuestion(text: string, fail: Fail): Question {
  const json = parseJson(text);
  if (!json.ok) throw fail(`${json.reason}; expected one object per line`);
  const columns = columnsOf(json.value);
  if (columns === undefined)
    throw fail('expected a JSON object with "id" and "question", or with "_id" and "text" (BEIR)');
  return questionOf(columns, fail);
}

/** The question of the columns that `parseQuestion` describes. */
export function questionOf(columns: Columns, fail: Fail): Question {
  // "text" only counts together with "_id": a corpus with "id" and "text" is not a question file.
  const isBeir = !columns.has('id') && columns.has('_id');
  const question = columns.get('question') ?? (isBeir ? columns.get('text') : undefined);
  if (typeof question !== 'string') {
    const found = (question ?? null) === null ? 'null or nothing' : `a value of type ${typeof question}`;
    throw fail(`${isBeir ? '"text"' : '"question"'} must be a string, found ${found}`);
  }
  const type = columns.get('type');
  const queries = columns.get('queries');
  return defined({
    question,
    query: textIn(columns, 'query', fail),
    history: stringsOf(columns, 'history_queries', fail),
    roundIndex: roundOf(columns.get('round_index'), fail),
    dataset: textIn(columns, 'dataset', fail),
    goldenAnswers: stringsOf(columns, 'golden_answers', fail)?.filter(isNotBlank),
    goldIds: idsOf(columns.get('gold_ids'), fail),
    goldTitles: stringsOf(columns, 'gold_titles', fail)?.filter(isNotBlank),
    id: isBeir ? idOf(columns.get('_id'), '"_id"', fail) : idOf(columns.get('id'), '"id"', fail),
    // Other sets use these two names for other things.
    queries: isTexts(queries) && queries.length > 0 ? queries : undefined,
    type: typeof type === 'string' ? type : undefined,
  });
}

export type Columns = ReadonlyMap<string, unknown>;

/** Makes the error for a fault of an entry; it names the file and the place. */
export type Fail = (reason: string) => Error;

/** The members of a JSON object as columns; undefined if the value is not an object. */
export function columnsOf(value: unknown): Columns | undefined {
  return isObject(value) ? new Map<string, unknown>(Object.entries(value)) : undefined;
}

/** Names of the column that identifies an entry. */
export const ID_COLUMNS = ['id', '_id', 'question_id', 'qid', 'query_id'] as const;

/** The column that identifies an entry, whatever its name is; undefined without one. */
export function idColumn(columns: Columns): unknown {
  return ID_COLUMNS.map((name) => columns.get(name)).find((id) => !isAbsent(id));
}

/** Whether an entry lacks a column: null counts as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Whether a text is more than white space. Blank titles, answers and ids judge nothing. */
export function isNotBlank(text: string): boolean {
  return text.trim() !== '';
}

/** The id as text. A number with a fraction or an exponent beyond 2^53 could name another passage. */
export function idOf(value: unknown, name: string, fail: Fail): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value);
  throw fail(`${name} must be a string or an integer without an exponent`);
}

/** A list of ids without blank ones; undefined if it is absent. */
function idsOf(value: unknown, fail: Fail): string[] | undefined {
  if (isAbsent(value)) return undefined;
  if (!Array.isArray(value)) throw fail('"gold_ids" must be an array of passage ids or absent');
  return value.map((id: unknown) => idOf(id, 'an element of "gold_ids"', fail)).filter(isNotBlank);
}

function roundOf(value: unknown, fail: Fail): number | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 31) return value;
  throw fail('"round_index" must be an integer from 0 to 2147483647, or absent');
}

function textIn(columns: Columns, name: string, fail: Fail): string | undefined {
  const value = columns.get(name);
  if (isAbsent(value)) return undefined;
  if (typeof value === 'string') return value;
  throw fail(`"${name}" must be a string or absent`);
}

/** A column that is a list of strings; undefined if it is absent. */
export function stringsOf(columns: Columns, name: string, fail: Fail): string[] | undefined {
  const value = columns.get(name);
  if (isAbsent(value)) return undefined;
  if (isTexts(value)) return value;
  throw fail(`"${name}" must be an array of strings or absent`);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}
