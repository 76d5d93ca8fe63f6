import type { FilterValue } from './filter.ts';

/** A word or sign of a filter expression. */
export type Token =
  | { readonly type: 'keyword' | 'symbol' | 'name'; readonly value: string; readonly at: number }
  | { readonly type: 'value'; readonly value: FilterValue; readonly at: number }
  | { readonly type: 'end'; readonly value: ''; readonly at: number };

const SPACE = /\s+/y;
const SYMBOL = /<=|>=|!=|[=<>(),]/y;
const DATE = /\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?/y;
const NUMBER = /-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const WORD = /[\p{L}_$@][\p{L}\p{M}\p{N}_$@.-]*/uy;
const KEYWORDS: readonly string[] = ['and', 'or', 'not', 'in', 'exists'];

/** Where a text stops being an expression, and what could stand there. */
interface Fault {
  readonly at: number;
  readonly expected: string;
}

/** The tokens of an expression; the last one has the type `end`. Keywords may have capital letters. */
export function tokensOf(text: string): readonly Token[] | Fault {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  while (at < text.length) {
    const space = match(SPACE);
    if (space !== null) {
      at += space[0].length;
      continue;
    }
    const token = nextToken(text, match, at);
    if ('expected' in token) return token;
    tokens.push(token.token);
    at += token.length;
  }
  tokens.push({ type: 'end', value: '', at: text.length });
  return tokens;
}

type Match = (pattern: RegExp) => RegExpExecArray | null;

function nextToken(
  expression: string,
  match: Match,
  at: number,
): { readonly token: Token; readonly length: number } | Fault {
  const symbol = match(SYMBOL);
  if (symbol !== null) return { token: { type: 'symbol', value: symbol[0], at }, length: symbol[0].length };
  const text = quotedAt(expression, at, "'");
  if (text !== null) return { token: { type: 'value', value: text.value, at }, length: text.length };
  const name = quotedAt(expression, at, '"');
  if (name !== null && name.value !== '')
    return { token: { type: 'name', value: name.value, at }, length: name.length };
  const date = match(DATE);
  if (date !== null) return { token: { type: 'value', value: date[0], at }, length: date[0].length };
  const number = match(NUMBER);
  if (number !== null) {
    const value = Number(number[0]);
    if (!Number.isFinite(value)) return { at, expected: 'a number in the range of float64' };
    return { token: { type: 'value', value, at }, length: number[0].length };
  }
  const word = match(WORD)?.[0];
  if (word === undefined)
    return { at, expected: "a column, a value ('text' in single quotes), and, or, not, or a bracket" };
  return { token: wordToken(word, at), length: word.length };
}

/**
 * The text between quotes, which are doubled inside it; null without the closing one. A regular expression would overflow its stack
 * over millions of characters.
 */
function quotedAt(text: string, at: number, quote: string): { readonly value: string; readonly length: number } | null {
  if (text[at] !== quote) return null;
  for (let end = text.indexOf(quote, at + 1); end !== -1; end = text.indexOf(quote, end + 2)) {
    if (text[end + 1] === quote) continue;
    return { value: text.slice(at + 1, end).replaceAll(quote + quote, quote), length: end + 1 - at };
  }
  return null;
}

function wordToken(word: string, at: number): Token {
  const lower = word.toLowerCase();
  if (lower === 'true' || lower === 'false') return { type: 'value', value: lower === 'true', at };
  return KEYWORDS.includes(lower) ? { type: 'keyword', value: lower, at } : { type: 'name', value: word, at };
}
