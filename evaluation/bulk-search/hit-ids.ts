import { rowId } from '../../src/index/passages/id-column.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';

/** The ids of hits, as an output has them. */
export interface HitIds {
  /** Reads the ids ahead if that many hits will need most of them. */
  readAll(expectedHits: number, signal: AbortSignal): Promise<void>;
  /** The ids of the hits of each list; `row:` and the row number for a passage without an id. */
  of(lists: readonly (readonly Hit[])[], signal: AbortSignal): Promise<readonly (readonly string[])[]>;
  close(): Promise<void>;
}

/** The ids that came with the hits, in the replies of a server. */
export class RepliedIds implements HitIds {
  async readAll(): Promise<void> {}

  async of(lists: readonly (readonly Hit[])[]): Promise<readonly (readonly string[])[]> {
    return lists.map((hits) => hits.map(({ id, row }) => id ?? rowId(row)));
  }

  async close(): Promise<void> {}
}
