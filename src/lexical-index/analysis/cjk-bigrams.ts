import type { Token, TokenType } from './standard-tokenizer.ts';

const CJK: ReadonlySet<TokenType> = new Set(['IDEOGRAPHIC', 'HIRAGANA', 'KATAKANA', 'HANGUL']);

/**
 * Bigrams as in Lucene's CJKBigramFilter: adjacent CJK tokens form a run of characters, which gives every pair of neighbours, or a
 * single character if the run has only one. Other tokens are unchanged.
 */
export function cjkBigrams(tokens: readonly Token[]): string[] {
  const terms: string[] = [];
  let run: string[] = [];
  let end = -1;
  const flush = (): void => {
    if (run.length === 1) terms.push(run[0]!);
    for (let i = 0; i + 1 < run.length; i++) terms.push(run[i]! + run[i + 1]!);
    run = [];
  };
  for (const token of tokens) {
    if (!CJK.has(token.type)) {
      flush();
      terms.push(token.term);
    } else {
      if (token.start !== end) flush();
      run.push(...token.term);
    }
    end = token.end;
  }
  flush();
  return terms;
}
