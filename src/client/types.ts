import type { Static } from 'typebox';
import type { nativeSearch } from '../http/dialects/native-search.ts';
import type { IndexesReply, PassageReply } from '../http/routes/native.ts';

/** The types of requests and replies, made of the schemas by which the server reads and describes them. */

type SearchBody = Static<(typeof nativeSearch)['request']>;

/** A text, or a sub-query with the question it serves. */
export type Query = string | { readonly query: string; readonly question?: string | null };

/** The body of POST /v1/search: everything but `queries` has a default (docs/http-api.md). */
export type SearchRequest = Readonly<Partial<Omit<SearchBody, 'queries' | 'exclude'>>> & {
  readonly queries: readonly Query[];
  readonly exclude?: readonly (string | number)[];
};

export type SearchReply = Static<(typeof nativeSearch)['reply']>;
/** The outcome of one query; `ok` tells a failed one. */
export type QueryResult = SearchReply['results'][number];
export type Hit = NonNullable<Extract<QueryResult, { ok: true }>['hits']>[number];
export type FusedHit = NonNullable<SearchReply['hits']>[number];

export type IndexInfo = Static<typeof IndexesReply>['indexes'][number];
export type Passage = Static<typeof PassageReply>;

export interface ScoredDocument {
  /** The row of the corpus with `contents`. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly score: number;
}

export interface Readiness {
  readonly ready: boolean;
  /** `ready`, `starting` or `stopping`. */
  readonly status: string;
  /** The whole answer: facts of the index, or the progress of the start. */
  readonly facts: Readonly<Record<string, unknown>>;
}
