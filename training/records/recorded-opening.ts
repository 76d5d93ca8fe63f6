import type { RecordHead } from './record-head.ts';

/** A line of `--record` for a passage or page that a client opened. */
export interface RecordedOpening extends RecordHead {
  /** What the client asked for: an id, a URL, a title, or `row N`. */
  readonly opened: string;
  /** The passages of the reply; empty if nothing has that name. */
  readonly rows: readonly number[];
  /** As in `RecordedQuery`. */
  readonly ids: readonly (string | null)[];
  readonly indexes?: readonly string[];
}
