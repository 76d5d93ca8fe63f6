import type { TrawlError } from '../../base/errors.ts';
import type { Truncation } from '../../encoder/text-encoder.ts';
import type { HybridPlaces, ListScales } from '../hybrid/hybrid-fusion.ts';

export interface Hit {
  readonly row: number;
  /** Larger is nearer, for all metrics and modes. Rounded to float32. Of a reranked hit: the score of the reranker. */
  readonly score: number;
  /** The score before it was rounded, by which lists are merged. Absent if it is the same number. */
  readonly unrounded?: number;
  /** Rank (from 1) and score of a reranked hit in the search that found it; absent if the hit is not reranked. */
  readonly firstStage?: { readonly rank: number; readonly score: number };
  /** The corpus row as JSON text, verbatim. */
  readonly document: string;
  /** Hybrid: where the dense and the BM25 list have the row. Absent in other modes. */
  readonly places?: HybridPlaces;
  /** The id as text, from a server: its replies have it without the document. Absent from other hits, and for a passage without an id. */
  readonly id?: string;
  /** Present in a group of indexes, whose rows count over all indexes. */
  readonly source?: HitSource;
  /** Present if no search found the passage: the server mixed it in, with the score of a neighbour. */
  readonly distractor?: true;
}

/** Orders hits by their scores as they were before rounding, best first. */
export function byScore(a: Hit, b: Hit): number {
  return (b.unrounded ?? b.score) - (a.unrounded ?? a.score);
}

/** Where a group of indexes found a passage. */
export interface HitSource {
  /** Name of the index. */
  readonly index: string;
  /** Row in that index. */
  readonly row: number;
  /** Score in that index. */
  readonly score: number;
}

/** An index of a group that did not answer a query. */
export interface FailedIndex {
  readonly index: string;
  readonly error: TrawlError;
}

/** How a query was embedded or analysed. */
export interface QueryEmbedding {
  /** Tokens embedded, special tokens included, null if an endpoint does not say it; for BM25 the distinct terms of the query. */
  readonly tokens: number | null;
  readonly truncated: boolean;
  /** The text before truncation, prefix included. */
  readonly text: string;
  /** What truncation to the model's token limit removed. */
  readonly cut: Truncation;
}

export interface QueryAnswer extends QueryEmbedding {
  readonly ok: true;
  /** Best first. `shortReason` says why there are fewer than k. */
  readonly hits: readonly Hit[];
  /** Null for an answer from the cache, which stores no vectors. Empty for BM25. */
  readonly vector: Float32Array | null;
  readonly certificate: QueryCertificate;
  /** Hybrid: the scales of the two lists, from which the parts of a score follow; in a group one entry per index, with its name. */
  readonly scales?: readonly (ListScales & { readonly index?: string })[];
  /** Present if the call asked for reranking. */
  readonly rerank?: Reranking;
  /** The indexes of a group whose passages are missing, with `allowPartial`. Absent if there are none. */
  readonly failedIndexes?: readonly FailedIndex[];
  /** How the server changed the answer on purpose. Absent if it did not. */
  readonly perturbed?: Perturbed;
  /** Why hits that were found are missing. Absent if none are. */
  readonly short?: ShortReason;
}

/**
 * Why a list has fewer hits than were asked for. `all`: it has all passages that the request may find, which for BM25 have a word of the
 * query. `minScore`: further ones score lower. `duplicates`: further ones repeat these. `limit`: no more hits are gone through.
 * `failedIndexes`: indexes of the group failed. `inexact`: the hits are not proved to be the best.
 */
export const SHORT_REASONS = ['all', 'minScore', 'duplicates', 'limit', 'failedIndexes', 'inexact'] as const;
export type ShortReason = (typeof SHORT_REASONS)[number];

/** Undefined if the answer has `k` hits. */
export function shortReason(answer: QueryAnswer, k: number): ShortReason | undefined {
  if (answer.hits.length >= k) return undefined;
  if (answer.short !== undefined) return answer.short;
  if (answer.failedIndexes !== undefined) return 'failedIndexes';
  return answer.certificate.exact ? 'all' : 'inexact';
}

/** The answer to a query for which nothing is searched. */
export const EMPTY_ANSWER: QueryAnswer = {
  ok: true,
  hits: [],
  tokens: 0,
  truncated: false,
  text: '',
  cut: 'nothing',
  vector: null,
  certificate: { exact: true, rescored: 0 },
};

export interface FailedQuery {
  readonly ok: false;
  readonly error: TrawlError;
}

/** A query fails without failing its call. A dialect without errors per query fails the whole request. */
export type QueryOutcome = QueryAnswer | FailedQuery;

/**
 * States that no other passage belongs among the hits, and the cost of the proof. For hybrid search: that the hits are the best of the
 * fusion of two lists, which are the exact first `depth` passages of dense and of BM25 search.
 */
export interface QueryCertificate {
  /**
   * False only for hits that the server changed on purpose (docs/perturbation.md), for the empty list in place of an answer that was
   * not recorded (docs/replay.md), and for hits of an approximate index in Milvus (docs/cluster.md).
   */
  readonly exact: boolean;
  /**
   * Rows rescored for this query after the scan of the codes. Unlike the hits, the number depends on the other queries of the
   * batch. Null if the engine scores every row.
   */
  readonly rescored: number | null;
  /** Hybrid: the length of the two lists, at most the rows of the index. Absent in other modes. */
  readonly depth?: number;
}

/** What the reranker did with the hits of a query. */
export type Reranking =
  | {
      readonly ok: true;
      /** Name of the reranker. */
      readonly model: string;
      /** Passages that it scored. */
      readonly passages: number;
      /** Of these, passages that were truncated to its token limit. */
      readonly truncated: number;
    }
  /** It failed, and the call allows that: the hits keep the order of the search. */
  | FailedQuery;

/** How the server changed the answer to a query on purpose (training/perturbation/). */
export interface Perturbed {
  /** Gold passages that are missing from the hits. */
  readonly droppedGold?: number;
  /** Passages among the hits that no search found. */
  readonly distractors?: number;
  /** How long the request was held back before its search, in milliseconds. */
  readonly delayMs?: number;
}

/** Whether the search had other hits. A delay alone changes no hit. */
export function hasOtherHits(perturbed: Perturbed | undefined): boolean {
  return (perturbed?.droppedGold ?? 0) > 0 || (perturbed?.distractors ?? 0) > 0;
}
