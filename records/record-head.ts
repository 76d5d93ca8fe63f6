/** What the lines of queries and of openings have: the request, the index, and where it comes from. */
export interface RecordHead {
  /** When the reply was made, in ISO 8601 (UTC, milliseconds): times compare as texts. */
  readonly time: string;
  /** Empty if the line has none, as `dialect`, `index` and `generation`. */
  readonly requestId: string;
  readonly dialect: string;
  /** Name of the index or group that was searched. */
  readonly index: string;
  /** Stands for the index's rows, model and settings. */
  readonly generation: string;
  /** The views that limited the search, with commas in between. */
  readonly view?: string;
  /** Position of the query or opening in its request, from 0. */
  readonly place: number;
  /** Id of the rollout that it belongs to. */
  readonly trajectory?: string;
  /** Where the trajectory comes from if the client did not name it: from its trace, or guessed from equal questions. */
  readonly trajectoryFrom?: 'traceparent' | 'guess';
  /** The agent's turn, counted as the client does; a guessed one from 1. */
  readonly turn?: number;
  /** Id of the question in its data set. */
  readonly questionId?: string;
  readonly dataset?: string;
  /** The run or checkpoint of the policy, and its training step. */
  readonly policy?: string;
  readonly step?: number;
  /** Such as `train` or `validation`, as the client names it. */
  readonly split?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** The ids of `traceparent` (W3C Trace Context), in hex. */
  readonly traceId?: string;
  readonly spanId?: string;
  /** The original question. A query was searched with it if its `template` (absent: that of the index) has it. */
  readonly question?: string;
}
