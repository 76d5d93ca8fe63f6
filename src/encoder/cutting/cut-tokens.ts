import type { TextTokenizer } from '../tokenizer/tokenizer.ts';

export interface TokenCut {
  readonly text: string;
  /** Whether the text goes on. */
  readonly isCut: boolean;
}

/** A longer run of characters without white space is not a word: text without spaces, a URL, data. It may be cut within. */
const LONGEST_WORD = 100;
const CHARACTERS_PER_TOKEN = 8;

/** The longest beginning of a text of whole words with at most `most` tokens, without special tokens; empty if the first has more. */
export function cutTokens(text: string, most: number, tokenizer: Pick<TextTokenizer, 'contentIds'>): TokenCut {
  const fits = (end: number): boolean => tokenizer.contentIds(text.slice(0, end), most).length <= most;
  const window = fittingWindow(text, most, fits);
  if (window === undefined) return { text, isCut: false };
  const runs = Array.from(text.slice(0, window).matchAll(/\S+/g), ({ index, 0: run }) => ({
    start: index,
    end: index + run.length,
  }));
  const whole = largest(runs.length, (count) => fits(runs[count - 1]!.end));
  const end = whole === 0 ? 0 : runs[whole - 1]!.end;
  const next = runs[whole];
  if (next === undefined || !isLongRun(text, next.start)) return { text: text.slice(0, end), isCut: true };
  const longest = next.start + largest(next.end - next.start, (count) => fits(next.start + count));
  // Not between the surrogates of a character.
  const within = /[\uD800-\uDBFF]/.test(text.charAt(longest - 1)) ? longest - 1 : longest;
  return { text: text.slice(0, within === next.start ? end : within), isCut: true };
}

/** Whether the run that starts here is too long for a word; its end may lie beyond the window. */
function isLongRun(text: string, start: number): boolean {
  const run = text.slice(start, start + LONGEST_WORD + 1);
  return run.length > LONGEST_WORD && !/\s/.test(run);
}

/** The end of a beginning that does not fit, at most about twice the one that fits; undefined if the whole text fits. */
function fittingWindow(text: string, most: number, fits: (end: number) => boolean): number | undefined {
  for (let end = (most + 1) * CHARACTERS_PER_TOKEN; end < text.length; end *= 2) if (!fits(end)) return end;
  return fits(text.length) ? undefined : text.length;
}

/** The largest number from 0 to `most` that passes; all smaller ones pass too. 0 always passes. */
function largest(most: number, passes: (count: number) => boolean): number {
  let [low, high] = [0, most];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (passes(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
