import { createHash } from 'node:crypto';
import { comparableBody, comparableText } from '../../src/base/comparable-text.ts';
import { contentsOf, textOf } from '../../src/index/passages/contents.ts';
import { itemError, jsonType, type ReadItem, readItems } from '../trajectories/read-items.ts';
import type { JudgedCandidate } from './judged-rounds.ts';

export interface KnownPassage {
  /** Equal for passages with equal text, whatever their titles (`comparableBody`). */
  readonly textHash: string;
  /** The id in the corpus that was indexed. */
  readonly corpusId: string;
}

/**
 * Reads the passages of a hand-over (`passages.jsonl`), or a corpus whose ids are row numbers, by row. Memory holds hashes and ids, not texts.
 *
 * @throws TrawlError CORPUS_BAD_LINE for an id that is not a row number; CORPUS_NOT_FOUND.
 */
export async function readKnownPassages(
  file: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, KnownPassage>> {
  const passages = new Map<number, KnownPassage>();
  for await (const item of readItems(file, { signal })) {
    const { value, place } = item;
    const contents = contentsOf(value);
    if (contents === undefined) throw itemError(place, 'expected "contents", or "title" and "text"');
    const text = comparableBody({ text: textOf(value, contents), contents });
    const textHash = createHash('sha256').update(text).digest('base64').slice(0, 22);
    passages.set(passageRow(item), { textHash, corpusId: String(value['corpus_id'] ?? value['id']) });
  }
  return passages;
}

function passageRow({ value, place }: ReadItem): number {
  const id = value['id'];
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  const found = typeof id === 'string' ? JSON.stringify(id.slice(0, 80)) : jsonType(id);
  throw itemError(
    place,
    `"id" is ${found}; expected a row number of the index as a string. trawl agentic-r hand-over writes such a file`,
  );
}

/** Rules that take candidates out of the negatives. Agentic-R has none of them. */
export const EXCLUSION_RULES = ['correct', 'duplicate', 'sibling'] as const;
export type ExclusionRule = (typeof EXCLUSION_RULES)[number];

export interface Exclusions {
  /** Exclude candidates with which the agent answered correctly (`em` 1). */
  readonly correct: boolean;
  /** Exclude passages with the text of a positive, and with `siblings` of a sibling's positive; by row. */
  readonly duplicatesBy: ReadonlyMap<number, KnownPassage> | undefined;
  /** Exclude the positives of other rounds and trajectories of the same question. */
  readonly siblings: SiblingPositives | undefined;
}

/** The positives of all rounds, by the comparable text of their question. */
export class SiblingPositives {
  readonly #passages: ReadonlyMap<number, KnownPassage> | undefined;
  readonly #byQuestion = new Map<string, { readonly rows: Set<number>; readonly texts: Set<string> }>();

  /** @param passages the texts of the passages, if copies are to be found. */
  constructor(passages: ReadonlyMap<number, KnownPassage> | undefined) {
    this.#passages = passages;
  }

  add(question: string, positives: readonly JudgedCandidate[]): void {
    const key = questionKey(question);
    const known = this.#byQuestion.get(key) ?? { rows: new Set<number>(), texts: new Set<string>() };
    this.#byQuestion.set(key, known);
    for (const { row } of positives) {
      known.rows.add(row);
      const passage = this.#passages?.get(row);
      if (passage !== undefined) known.texts.add(passage.textHash);
    }
  }

  has(question: string, row: number): boolean {
    const known = this.#byQuestion.get(questionKey(question));
    if (known === undefined) return false;
    const passage = this.#passages?.get(row);
    return known.rows.has(row) || (passage !== undefined && known.texts.has(passage.textHash));
  }
}

/** A question of nothing but quotes and spaces is compared as it is. */
function questionKey(question: string): string {
  return comparableText(question) || question;
}

/** The negatives that no rule excludes, and how many each rule took; the first rule that applies counts. */
export function withoutExcluded(
  question: string,
  { positives, negatives }: { positives: readonly JudgedCandidate[]; negatives: readonly JudgedCandidate[] },
  { correct, duplicatesBy, siblings }: Exclusions,
): { readonly kept: readonly JudgedCandidate[]; readonly excluded: Readonly<Record<ExclusionRule, number>> } {
  const excluded = { correct: 0, duplicate: 0, sibling: 0 };
  const positiveTexts = new Set(positives.map(({ row }) => duplicatesBy?.get(row)?.textHash));
  const ruleFor = ({ row, em }: JudgedCandidate): ExclusionRule | undefined => {
    if (correct && em === 1) return 'correct';
    const text = duplicatesBy?.get(row)?.textHash;
    if (text !== undefined && positiveTexts.has(text)) return 'duplicate';
    return siblings?.has(question, row) ? 'sibling' : undefined;
  };
  const kept = negatives.filter((candidate) => {
    const rule = ruleFor(candidate);
    if (rule !== undefined) excluded[rule] += 1;
    return rule === undefined;
  });
  return { kept, excluded };
}
