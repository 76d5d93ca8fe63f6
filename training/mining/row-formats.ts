import { defined } from '../../src/base/objects.ts';
import type { MinedPassage, MinedQuery } from './mined-query.ts';

interface RowOptions {
  /** Negatives that a row of a fixed length has. */
  readonly numNegatives: number;
  /** Whether rows of sentence-transformers have scores. */
  readonly outputScores: boolean;
}

export interface TrainingRow {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly positives: readonly MinedPassage[];
  readonly negatives: readonly MinedPassage[];
}

/** A column of a table of rows; `isList`: a list in each row. `integer` is int64, `number` float64. */
export interface RowColumn {
  readonly name: string;
  readonly type: 'text' | 'integer' | 'number';
  readonly isList?: boolean;
}

export interface RowFormat {
  /** Whether a query with fewer negatives than wanted gets no row. */
  readonly needsAllNegatives?: boolean;
  /** Whether the file is one JSON array, in place of one JSON object a line. */
  readonly isArray?: boolean;
  /** The columns of the rows as a table, in their order. Absent: they are written as JSON only. */
  columns?(options: RowOptions): readonly RowColumn[];
  rows(mined: MinedQuery, options: RowOptions): readonly TrainingRow[];
}

/** One row for a query, with all its positives. */
function rowPerQuery(fields: (mined: MinedQuery) => TrainingRow['fields']): RowFormat['rows'] {
  return (mined) => [{ fields: fields(mined), positives: mined.positives, negatives: mined.negatives }];
}

/** One row for each positive, with all negatives. `passages`: the positive first. */
function rowPerPositive(
  fields: (
    mined: MinedQuery,
    passages: readonly [MinedPassage, ...MinedPassage[]],
    options: RowOptions,
  ) => TrainingRow['fields'],
): RowFormat['rows'] {
  return (mined, options) =>
    mined.positives.map((positive) => ({
      fields: fields(mined, [positive, ...mined.negatives], options),
      positives: [positive],
      negatives: mined.negatives,
    }));
}

function pluck<Name extends keyof MinedPassage>(passages: readonly MinedPassage[], name: Name): MinedPassage[Name][] {
  return passages.map((passage) => passage[name]);
}

const TEXT = { type: 'text' } as const;
const ANCHOR: RowColumn = { name: 'anchor', ...TEXT };
const SCORES: RowColumn = { name: 'scores', type: 'number', isList: true };

/** sentence-transformers' `triplet`: a row for each positive and negative. */
const triplet: RowFormat = {
  columns: ({ outputScores }) => [
    ANCHOR,
    { name: 'positive', ...TEXT },
    { name: 'negative', ...TEXT },
    ...(outputScores ? [SCORES] : []),
  ],
  rows: ({ text, positives, negatives }, { outputScores }) =>
    positives.flatMap((positive) =>
      negatives.map((negative) => ({
        fields: {
          anchor: text,
          positive: positive.contents,
          negative: negative.contents,
          scores: outputScores ? [positive.score, negative.score] : undefined,
        },
        positives: [positive],
        negatives: [negative],
      })),
    ),
};

/** sentence-transformers' `n-tuple`: a row for each positive, with a column for each negative. */
const nTuple: RowFormat = {
  needsAllNegatives: true,
  columns: ({ numNegatives, outputScores }) => [
    ANCHOR,
    { name: 'positive', ...TEXT },
    ...Array.from({ length: numNegatives }, (_, i) => ({ name: `negative_${i + 1}`, ...TEXT })),
    ...(outputScores ? [SCORES] : []),
  ],
  rows: rowPerPositive(({ text, negatives }, passages, { outputScores }) => ({
    anchor: text,
    positive: passages[0].contents,
    ...Object.fromEntries(negatives.map(({ contents }, i) => [`negative_${i + 1}`, contents])),
    scores: outputScores ? pluck(passages, 'score') : undefined,
  })),
};

/** sentence-transformers' `labeled-pair`: a row for each passage; positives have the label 1, negatives 0. */
const labeledPair: RowFormat = {
  columns: ({ outputScores }) => [
    ANCHOR,
    { name: 'text', ...TEXT },
    outputScores ? { name: 'score', type: 'number' } : { name: 'label', type: 'integer' },
  ],
  rows({ text, positives, negatives }, { outputScores }) {
    const fields = ({ contents, score }: MinedPassage, label: number): TrainingRow['fields'] =>
      outputScores ? { anchor: text, text: contents, score } : { anchor: text, text: contents, label };
    return [
      ...positives.map((passage) => ({ fields: fields(passage, 1), positives: [passage], negatives: [] })),
      ...negatives.map((passage) => ({ fields: fields(passage, 0), positives: [], negatives: [passage] })),
    ];
  },
};

/** sentence-transformers' `labeled-list`: a row for each positive, with lists of texts and labels. */
const labeledList: RowFormat = {
  columns: ({ outputScores }) => [
    ANCHOR,
    { name: 'texts', ...TEXT, isList: true },
    outputScores ? SCORES : { name: 'labels', type: 'integer', isList: true },
  ],
  rows: rowPerPositive(({ text }, passages, { outputScores }) => ({
    anchor: text,
    texts: pluck(passages, 'contents'),
    ...(outputScores ? { scores: pluck(passages, 'score') } : { labels: passages.map((_, i) => (i === 0 ? 1 : 0)) }),
  })),
};

/** tevatron's rows with texts. */
const tevatron: RowFormat = {
  rows: rowPerQuery(({ query, text, positives, negatives }) => {
    // The title is always there: tevatron 0.1 fails on rows of which only some have it.
    const fields = ({ id, title, text, rank, score }: MinedPassage): object => ({
      docid: id,
      title,
      text,
      rank,
      score,
    });
    return {
      query_id: query.id,
      query: text,
      positive_passages: positives.map(fields),
      negative_passages: negatives.map(fields),
    };
  }),
};

/** tevatron's rows with ids, whose texts are in the corpus. */
const tevatronIds: RowFormat = {
  rows: rowPerQuery(({ query, text, positives, negatives }) => ({
    query_id: query.id,
    query_text: text,
    positive_document_ids: pluck(positives, 'id'),
    negative_document_ids: pluck(negatives, 'id'),
    positive_scores: pluck(positives, 'score'),
    negative_scores: pluck(negatives, 'score'),
  })),
};

/**
 * The rows of Agentic-R's tevatron, with the passages' ids. Its trainer embeds `question [SEP] query_text`, and reads `em` and
 * `local_utility` of each score, also without its ranking loss: nothing but which passage is the positive is known of them here. All rows
 * of a batch need the same number of passages.
 */
const agenticR: RowFormat = {
  needsAllNegatives: true,
  rows: rowPerPositive(({ query }, passages) => ({
    dataset: query.dataset ?? '',
    query_id: query.id,
    question: query.question,
    round_index: query.round ?? 1,
    history_queries: query.history ?? [],
    query_text: query.query ?? query.question,
    passage_ids: pluck(passages, 'id'),
    scores: passages.map((_, i) => (i === 0 ? { em: 1, local_utility: 1 } : { em: 0, local_utility: 0 })),
  })),
};

/** FlagEmbedding's rows. `pos_scores` and `neg_scores` are left out if a score is not known. */
const flagEmbedding: RowFormat = {
  rows: rowPerQuery(({ query, text, positives, negatives }) => {
    const hasScores = [...positives, ...negatives].every(({ score }) => score !== null);
    return defined({
      query: text,
      pos: pluck(positives, 'contents'),
      neg: pluck(negatives, 'contents'),
      pos_scores: hasScores ? pluck(positives, 'score') : undefined,
      neg_scores: hasScores ? pluck(negatives, 'score') : undefined,
      pos_id: pluck(positives, 'id'),
      neg_id: pluck(negatives, 'id'),
      query_id: query.id,
    });
  }),
};

/** DPR's file: one JSON array with an object for each query. `question` is the text that was embedded. */
const dpr: RowFormat = {
  isArray: true,
  rows: rowPerQuery(({ query, text, positives, negatives }) => {
    const context = ({ id, title, text, rank, score }: MinedPassage): object => ({
      title,
      text,
      passage_id: id,
      rank,
      score,
    });
    return {
      question: text,
      answers: query.answers,
      positive_ctxs: positives.map(context),
      negative_ctxs: [],
      hard_negative_ctxs: negatives.map(context),
      query_id: query.id,
    };
  }),
};

/** The formats of training rows by the names of `--format`. Formats of sentence-transformers have the names that it gives them. */
export const ROW_FORMATS = {
  triplet,
  'n-tuple': nTuple,
  'labeled-pair': labeledPair,
  'labeled-list': labeledList,
  tevatron,
  'tevatron-ids': tevatronIds,
  'agentic-r': agenticR,
  flagembedding: flagEmbedding,
  dpr,
} as const satisfies Readonly<Record<string, RowFormat>>;

export type RowFormatName = keyof typeof ROW_FORMATS;
export const ROW_FORMAT_NAMES = Object.keys(ROW_FORMATS) as readonly RowFormatName[];
