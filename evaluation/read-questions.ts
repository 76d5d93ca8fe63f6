import type { Judgements } from './judgements.ts';
import { lineError, readTextLines } from './read-text-lines.ts';

/** One question of an evaluation set. */
export interface Question {
  readonly id: string;
  readonly question: string;
  /** What a search agent looks for on the way to answer `question`; absent where the question itself is the query. */
  readonly query?: string;
  /** Any of them counts as the answer. */
  readonly goldenAnswers?: readonly string[];
  /** Ids of the relevant passages, as text. */
  readonly goldIds?: readonly string[];
}

/**
 * Reads a JSONL file of questions: `{"id", "question", "query"?, "golden_answers"?, "gold_ids"?}`, or BEIR's
 * `{"_id", "text"}`. Ids may be strings or integers; further columns are ignored, null counts as absent. Two questions
 * with the same id are an error.
 */
export async function readQuestions(file: string): Promise<Question[]> {
  const questions: Question[] = [];
  const lineOfId = new Map<string, number>();
  for await (const { number, text } of readTextLines(file)) {
    const question = parseQuestion(text, (reason) => lineError(file, number, reason));
    const first = lineOfId.get(question.id);
    if (first !== undefined) {
      throw lineError(file, number, `the id ${JSON.stringify(question.id)} is that of line ${first} already`);
    }
    lineOfId.set(question.id, number);
    questions.push(question);
  }
  return questions;
}

/** The `gold_ids` of questions as judgements, each with grade 1. Questions without any are not judged. */
export function judgementsOf(questions: readonly Question[]): Judgements {
  const judged = questions.filter(({ goldIds }) => goldIds !== undefined && goldIds.length > 0);
  return new Map(judged.map(({ id, goldIds }) => [id, new Map(goldIds!.map((goldId) => [goldId, 1]))]));
}

type Fail = (reason: string) => Error;

function parseQuestion(text: string, fail: Fail): Question {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw fail('not valid JSON; expected one object a line');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw fail('expected a JSON object with "id" and "question", or with "_id" and "text" as BEIR has them');
  }
  const columns = new Map<string, unknown>(Object.entries(parsed));
  // The two together, so that a corpus of "id" and "text" given by mistake is not read as questions.
  const isBeir = !columns.has('id') && columns.has('_id');
  const question = columns.get('question') ?? (isBeir ? columns.get('text') : undefined);
  if (typeof question !== 'string') throw fail(`${isBeir ? '"text"' : '"question"'} must be a string`);
  const query = columns.get('query') ?? undefined;
  if (query !== undefined && typeof query !== 'string') throw fail('"query" must be a string if it is there');
  const goldenAnswers = stringsOf(columns.get('golden_answers'), fail);
  const goldIds = idsOf(columns.get('gold_ids'), fail);
  return {
    id: isBeir ? idOf(columns.get('_id'), '"_id"', fail) : idOf(columns.get('id'), '"id"', fail),
    question,
    ...(query === undefined ? {} : { query }),
    ...(goldenAnswers === undefined ? {} : { goldenAnswers }),
    ...(goldIds === undefined ? {} : { goldIds }),
  };
}

function stringsOf(value: unknown, fail: Fail): string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((answer) => typeof answer === 'string')) return value;
  throw fail('"golden_answers" must be an array of strings if it is there');
}

function idsOf(value: unknown, fail: Fail): string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw fail('"gold_ids" must be an array of passage ids if it is there');
  return value.map((id: unknown) => idOf(id, 'an element of "gold_ids"', fail));
}

/** JSON numbers beyond 2^53 have been rounded by the parser, so they would name another passage. */
function idOf(value: unknown, name: string, fail: Fail): string {
  if (typeof value === 'string') return value;
  if (Number.isSafeInteger(value)) return String(value);
  throw fail(`${name} must be a string or an integer up to 2^53; write a larger one as a string`);
}
