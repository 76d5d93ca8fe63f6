/** Requests of several clients in a span of time. Times in milliseconds. */
export interface ClusterLoad {
  readonly name: string;
  /** Load average of the machine. */
  readonly load: number;
  readonly seconds: number;
  readonly clients: number;
  readonly answers: number;
  /** Replies with 503 and Retry-After. */
  readonly refused: number;
  /** Replies that differ from those of the folder's server. */
  readonly wrong: number;
  readonly queriesPerS: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** From the beginning to the end of the last refusal; null if none was refused. */
  readonly refusedUntilMs: number | null;
}

/** What `npm run test:cluster -- milvus --out FILE` writes. */
export interface MilvusClusterFigures {
  readonly milvus: string;
  readonly cores: number;
  readonly rows: number;
  readonly dimension: number;
  readonly k: number;
  readonly queryNodes: number;
  readonly replicas: number;
  readonly publishMs: number;
  /** Requests of every dialect whose replies equal those of the folder's server, and those of them that are answers. */
  readonly dialects: { readonly requests: number; readonly answered: number };
  /** Resident bytes of each process after publishing. */
  readonly memory: Readonly<Record<string, number>>;
  readonly rates: readonly ClusterLoad[];
  readonly events: readonly ClusterLoad[];
}
