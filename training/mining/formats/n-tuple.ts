import type { RowFormat } from './row-format.ts';

/** sentence-transformers' `n-tuple`: a row for each positive, with a column for each negative. */
export const nTuple: RowFormat = {
  needsAllNegatives: true,
  onlyInputs: true,
  isArray: false,
  columns({ numNegatives, outputScores }) {
    return [
      { name: 'anchor', type: 'text' },
      { name: 'positive', type: 'text' },
      ...Array.from({ length: numNegatives }, (_, i) => ({ name: `negative_${i + 1}`, type: 'text' }) as const),
      ...(outputScores ? [{ name: 'scores', type: 'number', isList: true } as const] : []),
    ];
  },
  rows({ text, positives, negatives }, _origin, { outputScores }) {
    return positives.map((positive) => ({
      fields: {
        anchor: text,
        positive: positive.contents,
        ...Object.fromEntries(negatives.map(({ contents }, i) => [`negative_${i + 1}`, contents])),
        ...(outputScores ? { scores: [positive, ...negatives].map(({ score }) => score) } : {}),
      },
      positives: [positive],
      negatives,
    }));
  },
};
