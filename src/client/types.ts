import type { Static } from 'typebox';
import type { nativePassages } from '../server/dialects/native-passages.ts';
import type { nativeScore } from '../server/dialects/native-score.ts';
import type { nativeSearch } from '../server/dialects/native-search.ts';
import type { IndexesReply } from '../server/routes/indexes.ts';
import type { PassageReply } from '../server/routes/passage.ts';

/** The types of requests and replies, derived from the schemas that the server validates with. */

type SearchBody = Static<(typeof nativeSearch)['request']>;

/** A text, or a sub-query with the question that it helps to answer and the agent's earlier queries, oldest first. */
export type Query =
  | string
  | { readonly query: string; readonly question?: string | null; readonly history?: readonly string[] | null };

/** The body of POST /v1/search. All fields except `queries` have defaults (docs/http-api.md). */
export type SearchRequest = Readonly<Partial<Omit<SearchBody, 'queries' | 'exclude'>>> & {
  readonly queries: readonly Query[];
  readonly exclude?: readonly (string | number | bigint)[];
};

export type SearchReply = Static<(typeof nativeSearch)['reply']>;
/** The outcome of one query; `ok` is false if it failed. */
export type QueryResult = SearchReply['results'][number];
export type Hit = NonNullable<Extract<QueryResult, { ok: true }>['hits']>[number];
export type FusedHit = NonNullable<SearchReply['hits']>[number];

export type IndexInfo = Static<typeof IndexesReply>['indexes'][number];
/** Several indexes that requests can search as one. */
export type GroupInfo = Static<typeof IndexesReply>['groups'][number];
export type Passage = Static<typeof PassageReply>;

/** The body of POST /v1/passages. */
export type PassagesRequest = Readonly<Partial<Static<(typeof nativePassages)['request']>>>;
export type PassagesReply = Static<(typeof nativePassages)['reply']>;

type ScoreBody = Static<(typeof nativeScore)['request']>;
/** A query with the passages to score for it. */
export type ScoreQuery = Readonly<Partial<ScoreBody['queries'][number]>> & { readonly query: string };
/** The body of POST /v1/score. */
export type ScoreRequest = Readonly<Partial<Omit<ScoreBody, 'queries'>>> & { readonly queries: readonly ScoreQuery[] };
export type ScoreReply = Static<(typeof nativeScore)['reply']>;

export interface ScoredDocument {
  /** The row of the corpus, with `contents` added if it has none. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly score: number;
}

export interface Readiness {
  readonly ready: boolean;
  /** `ready`, `starting` or `stopping`. */
  readonly status: string;
  /** The whole body: facts about the index if the server is ready, else the progress of its start. */
  readonly facts: Readonly<Record<string, unknown>>;
}
