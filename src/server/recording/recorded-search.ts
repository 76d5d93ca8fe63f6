import type { EncoderInput } from '../../encoder/text-encoder.ts';
import { type QueryOutcome, SHORT_REASONS, shortReason } from '../../search/calls/query-outcome.ts';
import type { Ranking, RetrieveCall } from '../../search/calls/retrieve-call.ts';
import type { QueryOrigin } from './query-origin.ts';

/** The search of one request, which may take several calls: `k` as requested, and the hits as sent in the response. */
export interface RecordedSearch extends Ranking, Pick<RetrieveCall, 'k' | 'template' | 'truncate' | 'filter'> {
  readonly queries: readonly EncoderInput[];
  /** How the request chose among the hits that were found, or merged the lists. Absent: the outcomes are what was found. */
  readonly selection?: RecordedSelection;
  /** Where each query comes from. Before `withOrigins`: what the fields of the dialect say about it. */
  readonly origins?: readonly QueryOrigin[];
  /** If not every item of the request is a query: the position of each query among them, and their number. */
  readonly items?: { readonly positions: readonly number[]; readonly count: number };
  /** One per query. */
  readonly outcomes: readonly QueryOutcome[];
}

/** The parts of a request that leave hits out or merge lists. */
export interface RecordedSelection {
  readonly minScore?: number;
  /** Number of ids to leave out. */
  readonly excluded?: number;
  readonly deduplicate?: string;
  readonly fuse?: string;
}

/** The lists with fewer hits than asked for, by the reason, such as `all=3, limit=1`. A fused search has no such lists in its reply. */
export function shortLists({ outcomes, k, selection }: RecordedSearch): string {
  if (selection?.fuse !== undefined) return '';
  const reasons = outcomes.flatMap((outcome) => (outcome.ok ? (shortReason(outcome, k) ?? []) : []));
  const counts = SHORT_REASONS.map((reason) => [reason, reasons.filter((each) => each === reason).length] as const);
  return counts.flatMap(([reason, count]) => (count === 0 ? [] : [`${reason}=${count}`])).join(', ');
}

/** A client opened a passage or a page: it asked for it by its name, and did not search. */
export interface RecordedOpening {
  /** What the client asked for: an id, a URL, a title, or `row N`. */
  readonly opened: string;
  /** The passages of the reply, in its order; empty if nothing has that name. */
  readonly passages: readonly {
    /** In a group: the row in the index `index`. */
    readonly row: number;
    readonly index?: string;
    /** The id as JSON text, with all its digits; undefined for a passage without one. */
    readonly idJson: string | undefined;
  }[];
  readonly origin?: QueryOrigin;
}

export interface RecordedRequest {
  readonly requestId: string;
  readonly dialect: string;
  readonly index: string;
  readonly generation: string;
  /** The views that limited the search, with commas in between. */
  readonly view?: string;
}

/** Records queries and their hits, and what clients open. Its methods must neither throw nor block. */
export interface QueryRecord {
  record(request: RecordedRequest, search: RecordedSearch): void;
  /** Absent: openings are not recorded. */
  recordOpenings?(request: RecordedRequest, openings: readonly RecordedOpening[]): void;
}
