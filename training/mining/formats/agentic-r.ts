import { originFields, type RowFormat } from './row-format.ts';

/**
 * The rows of Agentic-R's tevatron: one for each positive, with the passages' ids, the positive first. Its trainer embeds `question
 * [SEP] query_text`. All rows of a batch need the same number of passages.
 */
export const agenticR: RowFormat = {
  needsAllNegatives: true,
  onlyInputs: false,
  isArray: false,
  rows(mined, origin) {
    const { query, positives, negatives } = mined;
    return positives.map((positive) => ({
      fields: {
        dataset: query.dataset ?? '',
        query_id: query.id,
        question: query.question,
        round_index: query.round ?? 1,
        history_queries: query.history ?? [],
        query_text: query.query ?? query.question,
        passage_ids: [positive, ...negatives].map(({ id }) => id),
        scores: [positive, ...negatives].map(({ score }) => ({ score })),
        ...originFields(mined, origin),
      },
      positives: [positive],
      negatives,
    }));
  },
};
