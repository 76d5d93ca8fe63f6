/** What a load generator does to a server; it crosses to the generator's process as a file of JSON. */
export interface LoadPlan {
  readonly port: number;
  /** Passages per query. */
  readonly topk: number;
  readonly lanes: readonly LoadLane[];
  /** Keep the answers, to be read when the clock has stopped. Without it a status of 200 is all that is asked for. */
  readonly keepAnswers: boolean;
}

/** Clients that behave alike: each takes a sequence, sends its requests one after another, and takes the next. */
export interface LoadLane {
  readonly clients: number;
  /** Of requests, each its queries. */
  readonly sequences: readonly (readonly (readonly string[])[])[];
  /** False: a connection for each request, as clients without a session have it. */
  readonly keepAlive: boolean;
  /** Null: until the sequences are used up. Else no request begins after that, and sequences are begun again at their end. */
  readonly seconds: number | null;
  /** Between an answer and the next request of a client. */
  readonly pauseMs: number;
  /** False: in the background of the lanes that are, and cut off when those are through. */
  readonly timed: boolean;
}

/** What the timed lanes saw. */
export interface LoadResult {
  /** From the first request to the last answer. */
  readonly elapsedMs: number;
  readonly requests: number;
  /** Queries in requests answered with 200. */
  readonly queries: number;
  /** Of each request answered with 200, from before it was sent (connecting included) to its last byte. */
  readonly latenciesMs: readonly number[];
  /** Of each such request, what the server says it took but for encoding and searching; empty where it does not say. */
  readonly overheadsMs: readonly number[];
  /** Status, or the error of the connection, with how often. */
  readonly errors: Readonly<Record<string, number>>;
}

/** A line of the file of answers: what a query got. */
export interface QueryAnswer {
  readonly query: string;
  readonly ids: readonly string[];
  readonly scores: readonly number[];
}
