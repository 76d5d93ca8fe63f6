import { asTrawlError, type ErrorCode, type TrawlError } from '../src/errors.ts';

/** Errors of a query's own text or vector. */
const OF_QUERY: ReadonlySet<ErrorCode> = new Set([
  'EMPTY_QUERY',
  'QUERY_TOO_LONG',
  'NON_FINITE_QUERY',
  'SCORE_OVERFLOW',
]);

/**
 * Whether the query itself is the reason of its error, so that every further run would fail on it too. The details decide for a
 * code that also stands for failures of the machine or of a server: the model returned NaN for the text (`column`), the query leaves
 * no room for a passage (`queryTokens`), too many passages share a score in Pyserini's order (`maxTied`).
 */
export function isOfQuery({ code, details }: TrawlError): boolean {
  if (code === 'ENCODING_FAILED') return details['column'] !== undefined || details['queryTokens'] !== undefined;
  if (code === 'NOT_SUPPORTED') return details['maxTied'] !== undefined;
  return OF_QUERY.has(code);
}

/** Why a batch cannot be searched: an error that is not of a query's own text. */
export class SearchFailure extends Error {
  override readonly name = 'SearchFailure';
  readonly error: TrawlError;
  /** Place in the batch, from 0, of the first query that failed; undefined if the batch failed as a whole. */
  readonly place: number | undefined;
  /** Id of that query, or of the first of the batch. */
  readonly id: string;

  constructor(error: unknown, place: number | undefined, id: string) {
    const known = asTrawlError(error);
    super(known.message, { cause: known });
    this.error = known;
    this.place = place;
    this.id = id;
  }
}
