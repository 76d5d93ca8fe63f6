import { dprRule } from './dpr.ts';
import type { RuleDefinition, SplittingRule } from './splitting-rule.ts';

export const wiki18 = { names: ['wiki-18'], open: () => rule } satisfies RuleDefinition;

/**
 * Splits as `dpr`, with rows as in `wiki-18.jsonl`, which keeps part of the CSV quoting of `psgs_w100.tsv`: quotes in the
 * text are doubled, and a title with a space or a non-ASCII character is quoted. Ids count from 0.
 */
const rule: SplittingRule = {
  ...dprRule,
  firstId: 0,
  tsv: null,
  columns: ({ title, text }) => ({ contents: `${titleField(title)}\n${text.replaceAll('"', '""')}` }),
};

function titleField(title: string): string {
  return /^[!#-~]*$/.test(title) ? title : `"${title.replaceAll('"', '""')}"`;
}
