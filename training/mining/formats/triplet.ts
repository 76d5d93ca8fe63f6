import type { RowFormat } from './row-format.ts';

/** sentence-transformers' `triplet`: a row for each positive and negative. */
export const triplet: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: true,
  isArray: false,
  columns({ outputScores }) {
    return [
      { name: 'anchor', type: 'text' },
      { name: 'positive', type: 'text' },
      { name: 'negative', type: 'text' },
      ...(outputScores ? [{ name: 'scores', type: 'number', isList: true } as const] : []),
    ];
  },
  rows({ text, positives, negatives }, _origin, { outputScores }) {
    return positives.flatMap((positive) =>
      negatives.map((negative) => ({
        fields: {
          anchor: text,
          positive: positive.contents,
          negative: negative.contents,
          ...(outputScores ? { scores: [positive.score, negative.score] } : {}),
        },
        positives: [positive],
        negatives: [negative],
      })),
    );
  },
};
