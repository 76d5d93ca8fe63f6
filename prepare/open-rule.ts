import { TrawlError } from '../src/errors.ts';
import { dpr } from './rules/dpr.ts';
import { flashragWordsRule } from './rules/flashrag-words.ts';
import { ragR1 } from './rules/rag-r1.ts';
import { sentencesRule } from './rules/sentences.ts';
import type { SplittingRule } from './rules/splitting-rule.ts';
import { tokensRule } from './rules/tokens.ts';
import { wiki18 } from './rules/wiki-18.ts';
import { wordsRule } from './rules/words.ts';

/** Every rule that documents can be split by. R1-Searcher uses RAG-R1's program. */
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

/** The size of a passage where none is said; the other rules have theirs. */
const DEFAULT_SIZES: Partial<Record<RuleName, number>> = {
  words: 100,
  sentences: 6,
  tokens: 180,
  'flashrag-words': 512,
};

export interface RuleOptions {
  readonly rule: RuleName;
  /** Words, sentences or tokens of a passage. */
  readonly size?: number | undefined;
  /** Words, sentences or tokens that a passage has in common with the one before. Default 0. */
  readonly overlap?: number | undefined;
  /** The model whose tokens are counted by the rule `tokens`: a name or a folder. */
  readonly model?: string | undefined;
}

/** Throws USAGE for options that do not go together. */
export function checkRuleOptions({ rule, size, overlap, model }: RuleOptions): void {
  const defaultSize = DEFAULT_SIZES[rule];
  const usage = (text: string): TrawlError => new TrawlError('USAGE', text);
  if (defaultSize === undefined && (size !== undefined || overlap !== undefined)) {
    const sized = Object.keys(DEFAULT_SIZES).join(', ');
    throw usage(`The rule ${rule} makes passages of 100 words without overlap; --size and --overlap go with ${sized}.`);
  }
  if (rule === 'flashrag-words' && overlap !== undefined) {
    throw usage("FlashRAG's program has no overlap; take --rule words for one.");
  }
  const [actualSize, actualOverlap] = [size ?? defaultSize ?? 1, overlap ?? 0];
  if (!Number.isSafeInteger(actualSize) || actualSize < 1) throw usage(`--size is ${size}, expected 1 or more.`);
  if (!Number.isSafeInteger(actualOverlap) || actualOverlap < 0 || actualOverlap >= actualSize) {
    throw usage(`--overlap is ${actualOverlap}; it has to be less than the size of a passage, ${actualSize}.`);
  }
  if (rule === 'tokens' && model === undefined) {
    throw usage('The rule tokens counts the tokens of a model: name it with --model.');
  }
  if (rule !== 'tokens' && model !== undefined) throw usage(`--model goes with --rule tokens, not with ${rule}.`);
}

/** Errors: USAGE, and those of a model folder for the rule `tokens`. */
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
      // Every worker thread comes by here, and these take longer to load than all the rest.
      const { readModelFolder } = await import('../src/embedding/model-folder.ts');
      const { TextTokenizer } = await import('../src/embedding/tokenizer.ts');
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
