import type { Bm25Parameters } from '../../engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { StageTimings } from '../timings.ts';
import type { OrderValue, TreeOrder } from '../trees/tree-order.ts';
import type { Perturbed } from './perturbed.ts';
import type { Hit } from './query-outcome.ts';
import type { RowScope } from './row-scope.ts';

/** A search by a query tree over the fields of the inverted indexes. */
export interface TreeCall extends RowScope {
  readonly query: LexicalQuery;
  readonly parameters: Bm25Parameters;
  /** Hits to skip, and hits to return after them; both at least 0. */
  readonly from: number;
  readonly size: number;
  /** Counts the matching passages exactly up to this number; 0 does not count them. */
  readonly count: number;
  /** Passages with a lower score do not match. Default: none. */
  readonly minScore?: number;
  /**
   * The order of the hits, the first criterion first. More than a million matches reject the call with INVALID_REQUEST, as
   * does a column that the index does not have. Default: by score, best first, equal scores by row.
   */
  readonly order?: readonly TreeOrder[];
  /** With `order`: only hits after these values, one for each criterion. Default: all. */
  readonly after?: readonly OrderValue[];
  /** With `order`: whether scores are computed although no criterion needs them. Else they are arbitrary. Default: false. */
  readonly scored?: boolean;
  /**
   * Stands for `query` in the cache and in single flight: calls with the same key must have the same query while the index has the same
   * rows. Default: the call is computed in any case.
   */
  readonly key?: string;
  /** What the search asks for, as the record has it. Perturbation draws by it; a call without it is not perturbed. */
  readonly text?: string;
  readonly signal?: AbortSignal;
}

export interface TreeHit extends Hit {
  /** With `order`: the values of its criteria. */
  readonly orderValues?: readonly OrderValue[];
}

export interface TreeResult {
  /** Best first, or in the order of the call. */
  readonly hits: readonly TreeHit[];
  /** Score of the best match, also if it was skipped; null without a match. Arbitrary where scores are. */
  readonly best: number | null;
  /** Matching passages: exact up to `count`, else `count + 1`. */
  readonly total: number;
  /** How the server changed the hits on purpose. Absent if it did not. */
  readonly perturbed?: Perturbed;
  readonly timings: StageTimings;
}
