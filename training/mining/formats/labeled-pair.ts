import type { RowFormat } from './row-format.ts';

/** sentence-transformers' `labeled-pair`: a row for each passage; positives have the label 1, negatives 0. */
export const labeledPair: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: true,
  isArray: false,
  columns({ outputScores }) {
    return [
      { name: 'anchor', type: 'text' },
      { name: 'text', type: 'text' },
      outputScores ? { name: 'score', type: 'number' } : { name: 'label', type: 'integer' },
    ];
  },
  rows({ text, positives, negatives }, _origin, { outputScores }) {
    return [
      ...positives.map((positive) => ({
        fields: {
          anchor: text,
          text: positive.contents,
          ...(outputScores ? { score: positive.score } : { label: 1 }),
        },
        positives: [positive],
        negatives: [],
      })),
      ...negatives.map((negative) => ({
        fields: {
          anchor: text,
          text: negative.contents,
          ...(outputScores ? { score: negative.score } : { label: 0 }),
        },
        positives: [],
        negatives: [negative],
      })),
    ];
  },
};
