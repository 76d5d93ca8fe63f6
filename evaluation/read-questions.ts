import { parseJson } from '../corpus/parse-json.ts';
import { lineError, readTextLines } from '../src/base/files/read-text-lines.ts';
import { withoutLabels } from './answer-labels.ts';
import type { Judgements } from './judgements.ts';
import { titleKey } from './page-title.ts';
import { type Columns, columnsOf, type Fail, idOf, idsOf, isNotBlank, roundOf, stringsOf } from './question-columns.ts';

/** One question of an evaluation set. */
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
  /** The data set that the question comes from. */
  readonly dataset?: string;
  /** Alternative correct answers. */
  readonly goldenAnswers?: readonly string[];
  /** Ids of the relevant passages, as strings. */
  readonly goldIds?: readonly string[];
  /** Titles of the relevant pages, for sets that judge pages, such as HotpotQA and KILT. */
  readonly goldTitles?: readonly string[];
  /** What sort of question it is, such as `bridge` or `comparison` in HotpotQA. */
  readonly type?: string;
}

/**
 * Reads a JSONL file of questions, one `parseQuestion` a line, into memory. Throws CORPUS_BAD_LINE for an invalid line or a repeated
 * id, CORPUS_NOT_FOUND if the file cannot be read. `readQueries` of bulk-search/ reads files of any size.
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

/** Golden answers that passages can be searched for, by the id of their question, for `evaluateRun`. Questions without any have no entry. */
export function answersOf(questions: readonly Question[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    questions.flatMap(({ id, goldenAnswers = [] }) => {
      const answers = withoutLabels(goldenAnswers);
      return answers.length === 0 ? [] : [[id, answers] as const];
    }),
  );
}

/**
 * Parses a question: `{"id", "question", "query"?, "queries"?, "history_queries"?, "round_index"?, "dataset"?, "golden_answers"?,
 * "gold_ids"?, "gold_titles"?, "type"?}`, or BEIR's
 * `{"_id", "text"}`. Ids are strings or integers of any size. Ignores other columns; null counts as absent. Throws the error that
 * `fail` makes of a reason.
 */
export function parseQuestion(text: string, fail: Fail): Question {
  const json = parseJson(text);
  if (!json.ok) throw fail('not valid JSON; expected one object per line');
  const columns = columnsOf(json.value);
  if (columns === undefined)
    throw fail('expected a JSON object with "id" and "question", or with "_id" and "text" (BEIR)');
  return questionOf(columns, fail);
}

/** The question of columns as those of `parseQuestion`. */
export function questionOf(columns: Columns, fail: Fail): Question {
  // "text" only counts together with "_id": a corpus with "id" and "text" is not a question file.
  const isBeir = !columns.has('id') && columns.has('_id');
  const question = columns.get('question') ?? (isBeir ? columns.get('text') : undefined);
  if (typeof question !== 'string') throw fail(`${isBeir ? '"text"' : '"question"'} must be a string`);
  const query = columns.get('query') ?? undefined;
  if (query !== undefined && typeof query !== 'string') throw fail('"query" must be a string or absent');
  const history = stringsOf(columns, 'history_queries', fail);
  const roundIndex = roundOf(columns.get('round_index') ?? undefined, fail);
  const dataset = columns.get('dataset') ?? undefined;
  if (dataset !== undefined && typeof dataset !== 'string') throw fail('"dataset" must be a string or absent');
  const goldenAnswers = stringsOf(columns, 'golden_answers', fail)?.filter(isNotBlank);
  const goldIds = idsOf(columns.get('gold_ids'), fail);
  const goldTitles = stringsOf(columns, 'gold_titles', fail)?.filter(isNotBlank);
  const type = columns.get('type');
  const queries = columns.get('queries');
  return {
    id: isBeir ? idOf(columns.get('_id'), '"_id"', fail) : idOf(columns.get('id'), '"id"', fail),
    question,
    ...(query === undefined ? {} : { query }),
    ...(history === undefined ? {} : { history }),
    ...(roundIndex === undefined ? {} : { roundIndex }),
    ...(dataset === undefined ? {} : { dataset }),
    ...(goldenAnswers === undefined ? {} : { goldenAnswers }),
    ...(goldIds === undefined ? {} : { goldIds }),
    ...(goldTitles === undefined ? {} : { goldTitles }),
    // Other sets use these names for other things.
    ...(isTexts(queries) ? { queries } : {}),
    ...(typeof type === 'string' ? { type } : {}),
  };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === 'string');
}
