import { TrawlError } from '../../base/errors.ts';
import {
  COMPARISONS,
  type Filter,
  type FilterValue,
  MAX_FILTER_DEPTH,
  MAX_FILTER_NODES,
  MAX_FILTER_VALUES,
} from './filter.ts';

const EXAMPLE = "source in ('a', 'b') and date >= 2020-01-01 and not archived";

/**
 * Parses an expression such as `source in ('a', 'b') and date >= 2020-01-01 and not archived`. `not` binds tighter than `and`, and
 * `and` tighter than `or`. A column alone means `column = true`.
 *
 * @throws TrawlError INVALID_REQUEST with the position of the first fault.
 */
export function parseFilterExpression(text: string): Filter {
  return new Parser(text).parse();
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #nodes = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  parse(): Filter {
    const filter = this.#either(1);
    if (this.#peek.type !== 'end') throw this.#expected('and, or, or the end');
    return filter;
  }

  get #peek(): Token {
    return this.#tokens[this.#next]!;
  }

  /** Takes the next token if it is this keyword or symbol. */
  #take(text: string): boolean {
    const { type, value } = this.#peek;
    if ((type !== 'keyword' && type !== 'symbol') || value !== text) return false;
    this.#next++;
    return true;
  }

  /** Takes a word that is a keyword only here, so that columns may have its name. */
  #takeName(word: string): boolean {
    const { type, value } = this.#peek;
    if (type !== 'name' || value.toLowerCase() !== word) return false;
    this.#next++;
    return true;
  }

  #either(depth: number): Filter {
    const parts = [this.#all(depth)];
    while (this.#take('or')) parts.push(this.#all(depth));
    return parts.length === 1 ? parts[0]! : this.#node({ or: parts });
  }

  #all(depth: number): Filter {
    const parts = [this.#negation(depth)];
    while (this.#take('and')) parts.push(this.#negation(depth));
    return parts.length === 1 ? parts[0]! : this.#node({ and: parts });
  }

  #negation(depth: number): Filter {
    if (depth > MAX_FILTER_DEPTH) throw this.#expected(`a filter nested at most ${MAX_FILTER_DEPTH} levels deep`);
    if (this.#take('not')) return this.#node({ not: this.#negation(depth + 1) });
    if (!this.#take('(')) return this.#node(this.#test());
    const inner = this.#either(depth + 1);
    if (!this.#take(')')) throw this.#expected('and, or, or )');
    return inner;
  }

  #test(): Filter {
    const { type, value } = this.#peek;
    if (type !== 'name') throw this.#expected('a column, not, or (');
    this.#next++;
    const column = value as string;
    if (this.#take('exists')) return { column, op: 'exists' };
    if (this.#take('in')) return { column, op: 'in', values: this.#list() };
    if (this.#take('not')) {
      if (!this.#take('in')) throw this.#expected('in');
      return { not: { column, op: 'in', values: this.#list() } };
    }
    if (this.#takeName('between')) {
      const gte = this.#value();
      if (!this.#take('and')) throw this.#expected('and');
      return { column, op: 'range', gte, lte: this.#value() };
    }
    const op = COMPARISONS.find((comparison) => this.#take(comparison));
    return op === undefined ? { column, op: '=', value: true } : { column, op, value: this.#value() };
  }

  #list(): readonly FilterValue[] {
    if (!this.#take('(')) throw this.#expected("( and a list of values, such as ('a', 'b')");
    const values: FilterValue[] = [];
    // As in JSON, a list that a program makes may be empty.
    if (this.#take(')')) return values;
    do {
      if (values.length === MAX_FILTER_VALUES) throw this.#expected(`at most ${MAX_FILTER_VALUES} values`);
      values.push(this.#value());
    } while (this.#take(','));
    if (!this.#take(')')) throw this.#expected(', or )');
    return values;
  }

  #value(): FilterValue {
    const { type, value } = this.#peek;
    if (type !== 'value') throw this.#expected("a value: 'text', a number, a date such as 2020-01-31, true or false");
    this.#next++;
    return value;
  }

  #node<T extends Filter>(filter: T): T {
    if (++this.#nodes > MAX_FILTER_NODES) throw this.#expected(`at most ${MAX_FILTER_NODES} tests`);
    return filter;
  }

  #expected(what: string): TrawlError {
    return fault(this.#text, this.#peek.at, what);
  }
}

function fault(text: string, at: number, expected: string): TrawlError {
  const found = at >= text.length ? 'the end' : JSON.stringify(text.slice(at, at + 20));
  return new TrawlError(
    'INVALID_REQUEST',
    `The filter cannot be read at character ${at + 1}: found ${found}, expected ${expected}. Example: ${EXAMPLE}.`,
    { details: { position: at } },
  );
}

/** A word or sign of a filter expression. */
type Token =
  | { readonly type: 'keyword' | 'symbol' | 'name'; readonly value: string; readonly at: number }
  | { readonly type: 'value'; readonly value: FilterValue; readonly at: number }
  | { readonly type: 'end'; readonly value: ''; readonly at: number };

const SPACE = /\s+/y;
const SYMBOL = /<=|>=|!=|[=<>(),]/y;
const DATE = /\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?/y;
const NUMBER = /-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const WORD = /[\p{L}_$@][\p{L}\p{M}\p{N}_$@.-]*/uy;
const KEYWORDS: readonly string[] = ['and', 'or', 'not', 'in', 'exists'];

/** The tokens of an expression; the last one has the type `end`. Keywords may have capital letters. */
function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const space = matchAt(SPACE, text, at);
    if (space !== undefined) {
      at += space.length;
      continue;
    }
    const { token, length } = nextToken(text, at);
    tokens.push(token);
    at += length;
  }
  return [...tokens, { type: 'end', value: '', at }];
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function nextToken(text: string, at: number): { readonly token: Token; readonly length: number } {
  const symbol = matchAt(SYMBOL, text, at);
  if (symbol !== undefined) return { token: { type: 'symbol', value: symbol, at }, length: symbol.length };
  const quoted = quotedAt(text, at, "'");
  if (quoted !== null) return { token: { type: 'value', value: quoted.value, at }, length: quoted.length };
  const name = quotedAt(text, at, '"');
  if (name !== null && name.value !== '')
    return { token: { type: 'name', value: name.value, at }, length: name.length };
  const date = matchAt(DATE, text, at);
  if (date !== undefined) return { token: { type: 'value', value: date, at }, length: date.length };
  const number = matchAt(NUMBER, text, at);
  if (number !== undefined) {
    if (!Number.isFinite(Number(number))) throw fault(text, at, 'a number in the range of float64');
    return { token: { type: 'value', value: Number(number), at }, length: number.length };
  }
  const word = matchAt(WORD, text, at);
  if (word !== undefined) return { token: wordToken(word, at), length: word.length };
  throw fault(text, at, "a column, a value ('text' in single quotes), and, or, not, or a bracket");
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
