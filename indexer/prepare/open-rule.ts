import { TrawlError } from '../../src/base/errors.ts';
import { dpr } from './rules/dpr.ts';
import { flashragWordsRule } from './rules/flashrag-words.ts';
import { ragR1 } from './rules/rag-r1.ts';
import { sentencesRule } from './rules/sentences.ts';
import type { SplittingRule } from './rules/splitting-rule.ts';
import { tokensRule } from './rules/tokens.ts';
import { wiki18 } from './rules/wiki-18.ts';
import { wordsRule } from './rules/words.ts';

/** The splitting rules. `r1-searcher` is `rag-r1`: R1-Searcher uses RAG-R1's program. */
export const RULE_NAMES = [
  'words',
  'sentences',
  'tokens',
  'dpr',
  'wiki-18',
  'rag-r1',
  'r1-searcher',
  'flashrag-words',
] as const;

export type RuleName = (typeof RULE_NAMES)[number];

/** Default passage sizes. The rules not listed have a fixed size. */
const DEFAULT_SIZES: Partial<Record<RuleName, number>> = {
  words: 100,
  sentences: 6,
  tokens: 180,
  'flashrag-words': 512,
};

export interface RuleOptions {
  readonly rule: RuleName;
  /** Passage size in words, sentences or tokens, depending on the rule. */
  readonly size?: number;
  /** Words, sentences or tokens that consecutive passages share. Default 0. */
  readonly overlap?: number;
  /** Name or folder of the model whose tokens the rule `tokens` counts. */
  readonly model?: string;
}

/** Throws USAGE for options that cannot be combined. */
function checkRuleOptions({ rule, size, overlap, model }: RuleOptions): void {
  const defaultSize = DEFAULT_SIZES[rule];
  const usage = (text: string): TrawlError => new TrawlError('USAGE', text);
  if (defaultSize === undefined && (size !== undefined || overlap !== undefined)) {
    const sized = Object.keys(DEFAULT_SIZES).join(', ');
    throw usage(
      `The rule ${rule} always makes passages of 100 words without overlap. --size and --overlap only apply to the rules ${sized}.`,
    );
  }
  if (rule === 'flashrag-words' && overlap !== undefined) {
    throw usage('The rule flashrag-words does not support --overlap. Use --rule words for overlapping passages.');
  }
  const [actualSize, actualOverlap] = [size ?? defaultSize ?? 1, overlap ?? 0];
  if (!Number.isSafeInteger(actualSize) || actualSize < 1)
    throw usage(`--size is ${size}; it must be a whole number from 1.`);
  if (!Number.isSafeInteger(actualOverlap) || actualOverlap < 0 || actualOverlap >= actualSize) {
    throw usage(
      `--overlap is ${actualOverlap}; it must be a whole number from 0 and less than the passage size, ${actualSize}.`,
    );
  }
  if (rule === 'tokens' && model === undefined) {
    throw usage('The rule tokens counts the tokens of a model. Name the model with --model.');
  }
  if (rule !== 'tokens' && model !== undefined) throw usage(`--model only applies to --rule tokens, not to ${rule}.`);
}

/** Throws USAGE for invalid options and, for the rule `tokens`, the errors of `readModelFolder`. */
export async function openRule(options: RuleOptions): Promise<SplittingRule> {
  checkRuleOptions(options);
  const { rule } = options;
  const window = { size: options.size ?? DEFAULT_SIZES[rule] ?? 1, overlap: options.overlap ?? 0 };
  switch (rule) {
    case 'words':
      return wordsRule(window);
    case 'sentences':
      return sentencesRule(window);
    case 'tokens': {
      // Every worker thread calls this function, and these modules are slow to load: only load them for this rule.
      const { readModelFolder } = await import('../../src/encoder/model/model-folder.ts');
      const { TextTokenizer } = await import('../../src/encoder/tokenizer/tokenizer.ts');
      const { tokenizerPath } = await readModelFolder(options.model!);
      return tokensRule(window, await TextTokenizer.load(tokenizerPath));
    }
    case 'dpr':
      return dpr;
    case 'wiki-18':
      return wiki18;
    case 'rag-r1':
    case 'r1-searcher':
      return ragR1;
    case 'flashrag-words':
      return flashragWordsRule(window);
  }
}
