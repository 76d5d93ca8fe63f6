import { TrawlError } from '../../base/errors.ts';
import {
  COMPARISONS,
  type Filter,
  type FilterValue,
  MAX_FILTER_DEPTH,
  MAX_FILTER_NODES,
  MAX_FILTER_VALUES,
} from './filter.ts';
import { type Token, tokensOf } from './filter-tokens.ts';

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
    const tokens = tokensOf(text);
    if ('expected' in tokens) throw this.#fault(tokens.at, tokens.expected);
    this.#tokens = tokens;
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
    return this.#fault(this.#peek.at, what);
  }

  #fault(at: number, expected: string): TrawlError {
    const found = at >= this.#text.length ? 'the end' : JSON.stringify(this.#text.slice(at, at + 20));
    return new TrawlError(
      'INVALID_REQUEST',
      `The filter cannot be read at character ${at + 1}: found ${found}, expected ${expected}. Example: ${EXAMPLE}.`,
      { details: { position: at } },
    );
  }
}
