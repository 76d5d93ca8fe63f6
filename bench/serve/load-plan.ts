/** A load for the load generator, which reads it from a JSON file. */
export interface LoadPlan {
  readonly port: number;
  /** Passages per query. */
  readonly topk: number;
  readonly groups: readonly ClientGroup[];
  /** Keep the answers and parse them after the measurement. Without it only the status is checked. */
  readonly keepAnswers: boolean;
}

/** Clients with the same behaviour: each takes a sequence, sends its requests one by one, and takes the next sequence. */
export interface ClientGroup {
  readonly clients: number;
  /** Sequences of requests; a request is a list of queries. */
  readonly sequences: readonly (readonly (readonly string[])[])[];
  /** False: a new connection for each request, like clients without a session. */
  readonly keepAlive: boolean;
  /** No request begins after this time; the sequences are repeated until then. Null: each sequence once. */
  readonly seconds: number | null;
  /** Pause of a client between an answer and its next request, in ms. */
  readonly pauseMs: number;
  /** False: background load, which is not measured and stops when the timed groups have finished. */
  readonly timed: boolean;
}

/** The stages of the server-timing header, in order. */
export const SERVER_STAGES = ['parse', 'queue', 'embed', 'search', 'fetch', 'rerank', 'reply'] as const;

/** The measurements of the timed groups. */
export interface LoadResult {
  /** From the first request to the last answer. */
  readonly elapsedMs: number;
  readonly requests: number;
  /** Queries in requests answered with 200. */
  readonly queries: number;
  /** For each request answered with 200: from before sending (including connecting) to the last byte. */
  readonly latenciesMs: readonly number[];
  /** The same requests: the server's time without queueing, encoding and search. Empty if the server does not report it. */
  readonly overheadsMs: readonly number[];
  /** For each entry of `latenciesMs` the times of SERVER_STAGES. Empty if the server does not report them. */
  readonly stagesMs: readonly (readonly number[])[];
  /** Number of failures by status or connection error. */
  readonly errors: Readonly<Record<string, number>>;
}

/** The answer to one query, an entry of the file of answers. */
export interface QueryAnswer {
  readonly query: string;
  readonly ids: readonly string[];
  readonly scores: readonly number[];
}
