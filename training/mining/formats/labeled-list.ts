import type { RowFormat } from './row-format.ts';

/** sentence-transformers' `labeled-list`: a row for each positive, with lists of texts and labels. */
export const labeledList: RowFormat = {
  needsAllNegatives: false,
  onlyInputs: true,
  isArray: false,
  columns({ outputScores }) {
    return [
      { name: 'anchor', type: 'text' },
      { name: 'texts', type: 'text', isList: true },
      outputScores
        ? { name: 'scores', type: 'number', isList: true }
        : { name: 'labels', type: 'integer', isList: true },
    ];
  },
  rows({ text, positives, negatives }, _origin, { outputScores }) {
    return positives.map((positive) => {
      const passages = [positive, ...negatives];
      return {
        fields: {
          anchor: text,
          texts: passages.map(({ contents }) => contents),
          ...(outputScores
            ? { scores: passages.map(({ score }) => score) }
            : { labels: passages.map((_, i) => (i === 0 ? 1 : 0)) }),
        },
        positives: [positive],
        negatives,
      };
    });
  },
};
