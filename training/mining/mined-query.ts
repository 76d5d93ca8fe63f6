import { createHash } from 'node:crypto';
import { comparableText } from '../../src/base/comparable-text.ts';

/** A query to mine negatives for, whatever file it comes from: a question, or an agent's sub-query. */
export interface MiningQuery {
  /** Id of the question, or with `round` of an agent's query. Need not be unique. */
  readonly id: string;
  /** What the user asked. Queries with the same question are siblings. */
  readonly question: string;
  /** The agent's query for the question. Absent: the question is the query. */
  readonly query?: string;
  /** The agent's queries before this one, oldest first. */
  readonly history?: readonly string[];
  /** The number of the query among the agent's searches for the question, from 1. */
  readonly round?: number;
  readonly dataset?: string;
  readonly positiveIds: readonly string[];
  readonly answers: readonly string[];
}

/** Why a recorded query is left out: its search failed, or it belongs to another split. */
export type SkipReason = 'failed' | 'other_split';

/** Identifies a query in a run: equal question and query are one query, whoever asked it and how often. SHA-256 in hex. */
export function queryKey({ question, query }: MiningQuery): string {
  return sha256([question, query ?? null]);
}

/**
 * Key of all queries for a question: 16 hex digits of the SHA-256 of its comparable text. Stands in each row as `group`. Without such a
 * text the question is not known, and the key is `textKey`.
 */
export function groupKey(query: MiningQuery): string {
  const text = comparableText(query.question);
  return text === '' ? textKey(query) : sha256(['question', text]).slice(0, 16);
}

/** Key of all queries with the same text, whatever question they were asked for. */
export function textKey(query: MiningQuery): string {
  const text = comparableText(query.query ?? query.question);
  return text === '' ? queryKey(query).slice(0, 16) : sha256(['text', text]).slice(0, 16);
}

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

export interface MinedPassage {
  readonly row: number;
  /** The passage's id; the row number in decimal for a passage without one. */
  readonly id: string;
  /** Empty if there is none. */
  readonly title: string;
  /** The text without the title. */
  readonly text: string;
  readonly contents: string;
  /** Rank in the raw list, from 1; null for a positive that the list does not have. */
  readonly rank: number | null;
  /** The reranker's score if there is one, else the search's score; larger is nearer. Null: unknown. */
  readonly score: number | null;
}

export interface MinedQuery {
  readonly query: MiningQuery;
  readonly group: string;
  /** The text that was embedded, without the model's prefix. */
  readonly text: string;
  /** At least one, in the order of the judgements. */
  readonly positives: readonly MinedPassage[];
  /** Best first. */
  readonly negatives: readonly MinedPassage[];
}

/** What rows were mined with; stands in each line of the file of origins. */
export interface MiningOrigin {
  readonly index: string;
  readonly generation: string;
  /** SHA-256 of the encoder; null for an index without vectors. */
  readonly model: string | null;
  /** Name of the reranker that scored; null without one. */
  readonly reranker: string | null;
}

export interface Candidate extends MinedPassage {
  readonly rank: number;
}

/**
 * Why a candidate was rejected as a negative. A candidate has one reason, the first in this order.
 *
 * - `positive`: it is a positive of the query, by id.
 * - `sibling`: it is a positive of another query with the same question or the same text, by id.
 * - `copy`: its text without the title equals the text of a positive, its own or a sibling's, but for case, quotes and spaces.
 * - `near_duplicate`: it shares most of its words in sequence with such a positive.
 * - `query`: it is the question or the query itself.
 * - `answer`: it has a golden answer.
 * - `repeated`: it is a copy or near-duplicate of a better candidate, or of a passage before the range of ranks.
 * - `max_score`, `min_score`, `absolute_margin`, `relative_margin`: its score.
 */
export const DROP_REASONS = [
  'positive',
  'sibling',
  'copy',
  'near_duplicate',
  'query',
  'answer',
  'repeated',
  'max_score',
  'min_score',
  'absolute_margin',
  'relative_margin',
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export interface DroppedCandidate {
  readonly candidate: Candidate;
  readonly reason: DropReason;
}
