import { type Columns, type Fail, isNotBlank } from '../question-columns.ts';
import { type Question, questionOf } from '../read-questions.ts';

/** A layout of the entries of a question file: lines, elements of an array, or rows of a table. */
export interface QuestionFormat {
  /** The name for people, such as "HotpotQA". */
  readonly name: string;
  /** Whether a file whose first entry has these columns has this format. */
  matches(columns: Columns): boolean;
  /** Whether an entry is left out if another entry with its `id` is not of this kind. */
  isCounterpart?(columns: Columns): boolean;
  /** Parses an entry. `number` counts from 1 and is the id of a question without one. Throws the error of `fail`. */
  parse(columns: Columns, number: number, fail: Fail): Question;
}

/** What a format knows of a question beside its id and text. Empty lists count as absent. */
export interface FormatFacts {
  readonly goldIds?: readonly string[];
  readonly goldTitles?: readonly string[];
  readonly goldenAnswers?: readonly string[];
  readonly type?: string;
}

/**
 * The question of an entry whose id and text may have other names than `id` and `question`. Trawl's own columns, such as `gold_ids`, count
 * before what the format knows, so that they can be added to a file of any format.
 */
export function questionWith(
  columns: Columns,
  { id, question }: { readonly id: unknown; readonly question: unknown },
  facts: FormatFacts,
  fail: Fail,
): Question {
  const own = questionOf(new Map([...columns, ['id', id], ['question', question]]), fail);
  const filled = Object.entries(facts).filter(([, value]) => value !== undefined && value.length > 0);
  return { ...Object.fromEntries(filled), ...own };
}

/** Distinct texts that are not blank, in their first order. */
export function distinctTexts(texts: readonly string[]): string[] {
  return [...new Set(texts.filter(isNotBlank))];
}
