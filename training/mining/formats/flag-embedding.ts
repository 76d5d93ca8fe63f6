import { originFields, queryFields, type RowFormat } from './row-format.ts';

/** FlagEmbedding's rows: one for each query. `pos_scores` and `neg_scores` are left out if a score is not known. */
export const flagEmbedding: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: false,
  isArray: false,
  rows(mined, origin) {
    const { query, text, positives, negatives } = mined;
    const hasScores = [...positives, ...negatives].every(({ score }) => score !== null);
    return [
      {
        fields: {
          query: text,
          pos: positives.map(({ contents }) => contents),
          neg: negatives.map(({ contents }) => contents),
          ...(hasScores
            ? {
                pos_scores: positives.map(({ score }) => score),
                neg_scores: negatives.map(({ score }) => score),
              }
            : {}),
          pos_id: positives.map(({ id }) => id),
          neg_id: negatives.map(({ id }) => id),
          query_id: query.id,
          ...queryFields(mined),
          ...originFields(mined, origin),
        },
        positives,
        negatives,
      },
    ];
  },
};
