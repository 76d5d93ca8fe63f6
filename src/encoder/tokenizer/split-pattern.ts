import { patternClasses } from './tokenizers-unicode.ts';

/** The `Split` pre-tokenizer of a tokenizer.json (Qwen, Llama 3). */
export interface SplitConfig {
  readonly pattern?: { readonly Regex?: string };
  readonly behavior?: string;
  readonly invert?: boolean;
}

/** What a pattern may consist of: literals, classes, groups and quantifiers that mean the same in the reference and in JavaScript. */
const UNDERSTOOD =
  /^(?:\\p\{[LN]\}|\\[sSrn]|\(\?i:[a-z'|]*\)|\(\?[!:=]|\{\d+(?:,\d*)?\}|[a-zA-Z0-9'| ()?+*]|\[\^?(?:\\p\{[LN]\}|\\[srn])+\])+$/;

/**
 * Splits a text into the matches of the pattern and what is between them, with the reference's character classes. Null for a
 * pattern with other parts, and for a behaviour other than `Isolated`.
 */
export function patternSplitter({ pattern, behavior, invert }: SplitConfig): ((text: string) => string[]) | null {
  const source = pattern?.Regex;
  if (source === undefined || behavior !== 'Isolated' || invert === true || !UNDERSTOOD.test(source)) return null;
  const exact = source
    .replace(/\(\?i:([^()]*)\)/g, (_, letters: string) => `(?:${letters.replace(/[a-z]/g, eitherCase)})`)
    .replace(/\\(?:p\{[LN]\}|[sS])/g, (name) => patternClasses[name]!);
  const matcher = new RegExp(exact, 'gv');
  return (text) => {
    const parts: string[] = [];
    let end = 0;
    for (const { 0: match, index } of text.matchAll(matcher)) {
      if (index > end) parts.push(text.slice(end, index));
      if (match !== '') parts.push(match);
      end = index + match.length;
    }
    if (end < text.length) parts.push(text.slice(end));
    return parts;
  };
}

/** A letter without regard to case: ſ and K are other cases of s and k. Node.js 22 has no `(?i:…)`. */
function eitherCase(letter: string): string {
  const others: Readonly<Record<string, string>> = { s: '\u017f', k: '\u212a' };
  return `[${letter}${letter.toUpperCase()}${others[letter] ?? ''}]`;
}
