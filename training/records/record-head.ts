import type { QueryOrigin } from '../../src/server/recording/query-origin.ts';

/** What the lines of queries and of openings have: the request, the index, and where it comes from. */
export interface RecordHead extends QueryOrigin {
  /** When the reply was made, in ISO 8601 (UTC, milliseconds): times compare as texts. */
  readonly time: string;
  /** Empty if the line has none, as `dialect`, `index` and `generation`. */
  readonly requestId: string;
  readonly dialect: string;
  /** Name of the index or group that was searched. */
  readonly index: string;
  /** Stands for the index's rows, model and settings. */
  readonly generation: string;
  /** The views that limited the request, with commas in between. */
  readonly view?: string;
  /** Position of the query or opening in its request, from 0. */
  readonly place: number;
}
