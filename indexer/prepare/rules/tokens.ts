import type { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';
import type { Words } from '../python-text.ts';
import {
  type RuleDefinition,
  type SplittingRule,
  TITLE_AND_TEXT,
  type Window,
  type WindowOptions,
} from './splitting-rule.ts';
import { paragraphWords, wordPassages } from './words.ts';

/** Words whose token count is cached. */
const MAX_CACHED_WORDS = 200_000;

export const tokens = {
  names: ['tokens'],
  defaultSize: 180,
  overlaps: true,
  needsModel: true,
  async open(window, model) {
    // Every worker thread opens a rule, and these modules are slow to load: only load them for this rule.
    const { readModelFolder } = await import('../../../src/encoder/model/model-folder.ts');
    const { TextTokenizer } = await import('../../../src/encoder/tokenizer/tokenizer.ts');
    const { tokenizerPath } = await readModelFolder(model!);
    return tokensRule(window, await TextTokenizer.load(tokenizerPath));
  },
} satisfies RuleDefinition;

/**
 * Splits into passages of whole words with at most `size` tokens, special tokens not counted. A word with more tokens is a
 * passage of its own. Consecutive passages share as many whole words as fit `overlap` tokens.
 */
function tokensRule({ size, overlap }: WindowOptions, tokenizer: TextTokenizer): SplittingRule {
  const known = new Map<string, number>();
  const tokensOf = (word: string): number => {
    const found = known.get(word);
    if (found !== undefined) return found;
    const count = tokenizer.contentIds(word, size + 1).length;
    if (known.size < MAX_CACHED_WORDS) known.set(word, count);
    return count;
  };
  return {
    ...TITLE_AND_TEXT,
    split(document) {
      const { words, sections } = paragraphWords(document);
      const tokens = Array.from(words.starts, (start, at) => tokensOf(words.text.slice(start, words.ends[at])));
      return {
        ok: true,
        passages: wordPassages(document, words, sections, tokenWindows(words, tokens, size, overlap)),
      };
    },
  };
}

function tokenWindows({ count }: Words, tokens: readonly number[], size: number, overlap: number): Window[] {
  const found: Window[] = [];
  let from = 0;
  while (from < count) {
    let to = from + 1;
    let sum = tokens[from]!;
    while (to < count && sum + tokens[to]! <= size) sum += tokens[to++]!;
    found.push([from, to]);
    if (to === count) break;
    let next = to;
    let shared = 0;
    // Advance by at least one word.
    while (next - 1 > from && shared + tokens[next - 1]! <= overlap) shared += tokens[--next]!;
    from = next;
  }
  return found;
}
