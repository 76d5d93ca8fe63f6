import type { TextTokenizer } from '../../src/embedding/tokenizer.ts';
import { joinWords, type Words } from '../python-text.ts';
import { type SplittingRule, titleAndText, type Window } from './splitting-rule.ts';
import { type WindowOptions, wordsOf } from './words.ts';

/** Words whose number of tokens is remembered. */
const MEMORY = 200_000;

/**
 * Passages of as many words as have `size` tokens of a model at most, special tokens not counted; a word of more tokens
 * stands alone. The next passage begins with the last words of the one before that have `overlap` tokens at most.
 */
export function tokensRule({ size, overlap }: WindowOptions, tokenizer: TextTokenizer): SplittingRule {
  const known = new Map<string, number>();
  const tokensOf = (word: string): number => {
    const found = known.get(word);
    if (found !== undefined) return found;
    const count = tokenizer.contentIds(word, size + 1).length;
    if (known.size < MEMORY) known.set(word, count);
    return count;
  };
  return {
    ids: 'string',
    firstId: 0,
    tsv: 'dpr',
    columns: titleAndText,
    split(document) {
      const { words, sections } = wordsOf(document);
      const tokens = Array.from(words.starts, (start, at) => tokensOf(words.text.slice(start, words.ends[at])));
      const passages = tokenWindows(words, tokens, size, overlap).map(([from, to]) => ({
        title: document.title ?? '',
        text: joinWords(words, from, to),
        section: sections.at(words.starts[from]!),
      }));
      return { ok: true, passages };
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
    // At least one word further, or it would never end.
    while (next - 1 > from && shared + tokens[next - 1]! <= overlap) shared += tokens[--next]!;
    from = next;
  }
  return found;
}
