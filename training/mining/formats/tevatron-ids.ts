import { originFields, queryFields, type RowFormat } from './row-format.ts';

/** tevatron's rows with ids, whose texts are in the corpus: one for each query, with all its positives. */
export const tevatronIds: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: false,
  isArray: false,
  rows(mined, origin) {
    const { query, text, positives, negatives } = mined;
    return [
      {
        fields: {
          query_id: query.id,
          query_text: text,
          positive_document_ids: positives.map(({ id }) => id),
          negative_document_ids: negatives.map(({ id }) => id),
          positive_scores: positives.map(({ score }) => score),
          negative_scores: negatives.map(({ score }) => score),
          ...queryFields(mined),
          ...originFields(mined, origin),
        },
        positives,
        negatives,
      },
    ];
  },
};
