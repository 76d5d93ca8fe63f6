import { formatTrecRun } from '../../trec-run.ts';
import type { FileBytes, FoundQuery, ResultEncoder } from './result-encoder.ts';

/**
 * A TREC run (`formatTrecRun`). The id of a query with a round is `ID#ROUND`, because trec_eval takes equal ids for one query. A query
 * that failed has no lines.
 */
export class TrecResults implements ResultEncoder {
  readonly needsIds = true;
  readonly pendingHits = 0;
  readonly #tag: string;

  constructor(tag: string) {
    this.#tag = tag;
  }

  begin(): FileBytes {
    return [];
  }

  add(found: readonly FoundQuery[]): FileBytes {
    const lines = found.flatMap(({ id, round, hits, ids }) => {
      const passages = hits.map(({ score }, i) => ({ id: ids[i]!, score }));
      return [...formatTrecRun(new Map([[round === undefined ? id : `${id}#${round}`, passages]]), { tag: this.#tag })];
    });
    return [Buffer.from(lines.join(''))];
  }

  end(): FileBytes {
    return [];
  }

  state(): unknown {
    return null;
  }
}
