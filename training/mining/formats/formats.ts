import { agenticR } from './agentic-r.ts';
import { dpr } from './dpr.ts';
import { flagEmbedding } from './flag-embedding.ts';
import { labeledList } from './labeled-list.ts';
import { labeledPair } from './labeled-pair.ts';
import { nTuple } from './n-tuple.ts';
import type { RowFormat } from './row-format.ts';
import { tevatron } from './tevatron.ts';
import { tevatronIds } from './tevatron-ids.ts';
import { triplet } from './triplet.ts';

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
