import type { MinedPassage, MinedQuery, MiningOrigin } from '../mined-query.ts';

export interface RowOptions {
  /** Negatives that a row of a fixed length has. */
  readonly numNegatives: number;
  /** Whether rows of sentence-transformers have scores. */
  readonly outputScores: boolean;
}

/** A row as it is written, and the passages in it. */
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

/** How the rows of a trainer look. */
export interface RowFormat {
  /** Whether a query with fewer negatives than wanted gets no row. */
  readonly needsAllNegatives: boolean;
  /** Whether the trainer takes every column as an input: what a row comes from is then written to a file beside it. */
  readonly onlyInputs: boolean;
  /** Whether the file is one JSON array, in place of one JSON object a line. */
  readonly isArray: boolean;
  /** The columns of the rows as a table, in their order. Absent: they are written as JSON only. */
  columns?(options: RowOptions): readonly RowColumn[];
  rows(mined: MinedQuery, origin: MiningOrigin, options: RowOptions): readonly TrainingRow[];
}

/** Where a row comes from: the last fields of each row, or the line of the file of origins. */
export function originFields({ query, group }: MinedQuery, { generation, model, reranker }: MiningOrigin): object {
  return { ...(query.dataset === undefined ? {} : { dataset: query.dataset }), group, generation, model, reranker };
}

/** The question and the agent's queries, where the row's query is a composed text. */
export function queryFields({ query }: MinedQuery): object {
  return {
    question: query.question,
    sub_query: query.query,
    history_queries: query.history,
    round_index: query.round,
  };
}
