import type { MinedPassage } from '../mined-query.ts';
import { originFields, queryFields, type RowFormat } from './row-format.ts';

/** DPR's file: one JSON array with an object for each query. `question` is the text that was embedded. */
export const dpr: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: false,
  isArray: true,
  rows(mined, origin) {
    const { query, text, positives, negatives } = mined;
    const { question: source_question, ...fields } = queryFields(mined) as { question: string };
    return [
      {
        fields: {
          question: text,
          answers: query.answers,
          positive_ctxs: positives.map(contextOf),
          negative_ctxs: [],
          hard_negative_ctxs: negatives.map(contextOf),
          query_id: query.id,
          source_question,
          ...fields,
          ...originFields(mined, origin),
        },
        positives,
        negatives,
      },
    ];
  },
};

function contextOf({ id, title, text, rank, score }: MinedPassage): object {
  return { title, text, passage_id: id, rank, score };
}
