import { asTrawlError, type ErrorCode, TrawlError } from '../../base/errors.ts';

/** Errors of a query's own text or vector. */
const OF_QUERY: ReadonlySet<ErrorCode> = new Set([
  'EMPTY_QUERY',
  'QUERY_TOO_LONG',
  'ENCODING_FAILED',
  'NON_FINITE_QUERY',
  'SCORE_OVERFLOW',
  'RERANK_REFUSED',
  'ENDPOINT_REFUSED',
]);

/**
 * Whether the query itself is the reason of its error, so that every further search for it would fail too. After any other error the same
 * query may succeed, so a run over many queries stops there. NOT_SUPPORTED has this meaning only if too many passages share a score in
 * Pyserini's order (`maxTied`).
 */
export function isOfQuery({ code, details }: TrawlError): boolean {
  return OF_QUERY.has(code) || (code === 'NOT_SUPPORTED' && details.maxTied !== undefined);
}

/** Whether an error that a server answers for a query has this meaning, by its code alone. */
export function isCodeOfQuery(code: string): boolean {
  return (OF_QUERY as ReadonlySet<string>).has(code);
}

/** Why a batch of queries cannot be searched: an error that is not of a query itself. */
export class SearchFailure extends Error {
  override readonly name = 'SearchFailure';
  readonly error: TrawlError;
  /** Place in the batch, from 0, of the first query that failed; undefined if the batch failed as a whole. */
  readonly place: number | undefined;

  constructor(error: unknown, place?: number) {
    const known = asTrawlError(error);
    super(known.message, { cause: known });
    this.error = known;
    this.place = place;
  }
}

/** Where a batch stands in a run. */
export interface BatchPlace {
  /** Queries before it. */
  readonly before: number;
  /** Queries of the run. */
  readonly of: number;
  /** Id of each query of the batch. */
  readonly ids: readonly string[];
}

/** The error of a run: names the query at which the search failed. `next`: what the next run does. */
export function failedAt({ error, place }: SearchFailure, batch: BatchPlace, next: string): TrawlError {
  const id = batch.ids[place ?? 0]!;
  const first = place === undefined ? 'The batch from query' : 'Query';
  const number = batch.before + (place ?? 0) + 1;
  const message = `${first} ${number} of ${batch.of} (id ${JSON.stringify(id)}): ${error.message} ${next}`;
  return new TrawlError(error.code, message, { details: { ...error.details, query: id }, cause: error });
}
