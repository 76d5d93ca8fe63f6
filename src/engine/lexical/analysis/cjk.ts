import type { Token, TokenType } from './standard-tokenizer.ts';

/**
 * Folds width as Lucene's CJKWidthFilter does: full-width ASCII (U+FF01 to U+FF5E) becomes ASCII, half-width katakana
 * (U+FF65 to U+FF9F) becomes katakana. A half-width sound mark is composed with the katakana before it.
 */
export function foldWidth(term: string): string {
  return term.replace(OTHER_WIDTH, (characters) => characters.normalize('NFKC'));
}

/** Full-width ASCII; or half-width katakana, with a katakana before it that a sound mark may compose with. */
const OTHER_WIDTH = /[\uff01-\uff5e]+|[カキクケコサシスセソタチツテトハヒフヘホウワヰヱヲヽ]?[\uff65-\uff9f]+/g;

const CJK: ReadonlySet<TokenType> = new Set(['IDEOGRAPHIC', 'HIRAGANA', 'KATAKANA', 'HANGUL']);

/** A term with the UTF-16 offsets of the text that it stands for: [start, end). */
export interface TermSpan {
  readonly term: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Bigrams as in Lucene's CJKBigramFilter: adjacent CJK tokens form a run of characters, which gives every pair of neighbours, or a
 * single character if the run has only one. Other tokens are unchanged.
 */
export function cjkBigrams(tokens: readonly Token[]): TermSpan[] {
  const spans: TermSpan[] = [];
  let run: TermSpan[] = [];
  let end = -1;
  const flush = (): void => {
    if (run.length === 1) spans.push(run[0]!);
    for (let i = 0; i + 1 < run.length; i++) {
      const [first, second] = [run[i]!, run[i + 1]!];
      spans.push({ term: first.term + second.term, start: first.start, end: second.end });
    }
    run = [];
  };
  for (const token of tokens) {
    if (!CJK.has(token.type)) {
      flush();
      spans.push(token);
    } else {
      if (token.start !== end) flush();
      run.push(...charactersOf(token));
    }
    end = token.end;
  }
  flush();
  return spans;
}

/** The characters of a token. If folding left fewer characters than the text has, each gets the place of the whole token. */
function charactersOf({ term, start, end }: Token): TermSpan[] {
  const characters = [...term];
  if (term.length !== end - start) return characters.map((character) => ({ term: character, start, end }));
  let at = start;
  return characters.map((character) => {
    const from = at;
    at += character.length;
    return { term: character, start: from, end: at };
  });
}
