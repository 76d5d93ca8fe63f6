import type { RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';

/** One query of a bulk search. */
export interface BulkQuery {
  /** Ids may repeat. */
  readonly id: string;
  /** Which search for the question it is, if the file says so. */
  readonly round?: number;
  readonly query: RetrieveQuery;
}

/** The queries of a bulk search, in the order of their file. */
export interface QuerySource {
  readonly count: number;
  /** Whether any query has a round. */
  readonly hasRounds: boolean;
  /** SHA-256 of each file, by what the file has. Equal hashes mean equal queries. */
  readonly hashes: Readonly<Record<string, string>>;
  /**
   * Reads the queries [first, end), in pieces of any length.
   *
   * @throws TrawlError CORPUS_CHANGED if a file changed since it was opened.
   */
  read(first: number, end: number): AsyncGenerator<readonly BulkQuery[], void>;
  close(): void;
}
