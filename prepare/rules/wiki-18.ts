import { dpr } from './dpr.ts';
import type { SplittingRule } from './splitting-rule.ts';

/**
 * DPR's passages as `wiki-18.jsonl` has them, with ids from 0: the fields of `psgs_w100.tsv` with their CSV quoting
 * half undone. Quotes in the text are doubled; a title is in quotes where it holds a space or a character beyond ASCII.
 */
export const wiki18: SplittingRule = {
  ...dpr,
  firstId: 0,
  tsv: null,
  columns: ({ title, text }) => ({ contents: `${titleField(title)}\n${text.replaceAll('"', '""')}` }),
};

function titleField(title: string): string {
  return /^[!#-~]*$/.test(title) ? title : `"${title.replaceAll('"', '""')}"`;
}
