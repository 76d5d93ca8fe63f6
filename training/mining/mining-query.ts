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
  /** Ids of the relevant passages. */
  readonly positiveIds: readonly string[];
  /** Alternative correct answers to the question. */
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
