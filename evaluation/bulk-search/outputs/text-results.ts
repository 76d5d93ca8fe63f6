import { formatTrecRun } from '../../run.ts';
import { type FoundQuery, type ResultEncoder, rowOfHit } from './result-encoder.ts';

/**
 * One line a query: `{"id", "round_index"?, "hits": [{"index"?, "row", "id", "score", "firstStage"?}]}`, or for a query that failed
 * `{"id", "round_index"?, "error": {"code", "message"}}`.
 */
export function jsonlResults(): ResultEncoder {
  return textResults(({ id, round, hits, ids, error }) => {
    const query = { id, round_index: round };
    if (error !== undefined) {
      const { code, message } = error;
      return `${JSON.stringify({ ...query, error: { code, message } })}\n`;
    }
    const written = hits.map((hit, i) => ({
      index: hit.source?.index,
      row: rowOfHit(hit),
      id: ids[i]!,
      score: hit.score,
      firstStage: hit.firstStage,
    }));
    return `${JSON.stringify({ ...query, hits: written })}\n`;
  });
}

/**
 * A TREC run (`formatTrecRun`). The id of a query with a round is `ID#ROUND`, because trec_eval takes equal ids for one query. A query
 * that failed has no lines.
 */
export function trecResults(tag: string): ResultEncoder {
  return textResults(({ id, round, hits, ids }) => {
    const passages = hits.map(({ score }, i) => ({ id: ids[i]!, score }));
    return [...formatTrecRun(new Map([[round === undefined ? id : `${id}#${round}`, passages]]), { tag })].join('');
  });
}

function textResults(linesOf: (query: FoundQuery) => string): ResultEncoder {
  return {
    needsIds: true,
    pendingHits: 0,
    begin: () => [],
    add: (found) => [Buffer.from(found.map(linesOf).join(''))],
    end: () => [],
    state: () => null,
  };
}
