/** What happened to the requests of several clients in a span of time. Times in milliseconds. */
export interface LoadFigures {
  readonly seconds: number;
  readonly clients: number;
  /** Replies that were those of the folder's server. */
  readonly answers: number;
  /** Replies with 503 and Retry-After. */
  readonly refused: number;
  /** All others: none, or the test fails. */
  readonly wrong: number;
  readonly queriesPerS: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Of answers and refusals. */
  readonly slowestMs: number;
  /** From the beginning to the end of the last refusal; null if none was refused. */
  readonly refusedUntilMs: number | null;
  /** The longest time without a right answer. */
  readonly longestSilenceMs: number;
}

/** A rate of searches. */
export interface ClusterRate extends LoadFigures {
  readonly name: string;
  /** Load average of the machine. */
  readonly load: number;
}

/** A fault of the cluster under load. The figures are those of single searches, from the beginning of the fault until all is well again. */
export interface ClusterEvent extends ClusterRate {
  /** Right answers to searches sent after the fault began and answered before it ended. */
  readonly answersMeanwhile: number;
  /** Requests of all dialects, sent by further clients beside the searches; null if there were none. */
  readonly dialects: Pick<LoadFigures, 'answers' | 'refused' | 'wrong'> | null;
}

/** Resident bytes of each process. */
export interface ClusterMemory {
  /** What is loaded. */
  readonly name: string;
  readonly bytes: Readonly<Record<string, number>>;
}

/** What `npm run check -- cluster PART --out FILE` writes. */
export interface ClusterFigures {
  /** With its version. */
  readonly engine: string;
  readonly cores: number;
  readonly rows: number;
  readonly dimension: number;
  readonly k: number;
  /** Nodes that hold rows. */
  readonly nodes: number;
  /** Parts that the rows are divided into (Milvus: channels). */
  readonly shards: number;
  /** Of all rows. */
  readonly copies: number;
  readonly publishMs: number;
  /** Bytes of the copies on disk (OpenSearch). */
  readonly diskBytes?: number;
  /** Requests of every dialect whose replies equal those of the folder's server, and those of them that are answers. */
  readonly dialects: { readonly requests: number; readonly answered: number };
  readonly memory: readonly ClusterMemory[];
  readonly rates: readonly ClusterRate[];
  readonly events: readonly ClusterEvent[];
}
