import type { MinedPassage } from '../mined-query.ts';
import { originFields, queryFields, type RowFormat } from './row-format.ts';

/** tevatron's rows with texts: one for each query, with all its positives. */
export const tevatron: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: false,
  isArray: false,
  rows(mined, origin) {
    const { query, text, positives, negatives } = mined;
    return [
      {
        fields: {
          query_id: query.id,
          query: text,
          positive_passages: positives.map(passageOf),
          negative_passages: negatives.map(passageOf),
          ...queryFields(mined),
          ...originFields(mined, origin),
        },
        positives,
        negatives,
      },
    ];
  },
};

/** The title is always there: tevatron 0.1 fails on rows of which only some have it. */
function passageOf({ id, title, text, rank, score }: MinedPassage): object {
  return { docid: id, title, text, rank, score };
}
