import { contentException, ElasticsearchError, type Location } from './elasticsearch-error.ts';

/** Bodies need about a dozen levels. Deeper ones could overflow the stack. */
const MAX_DEPTH = 64;
/** Reading this many values takes about as long as a search may occupy the event loop. */
const MAX_VALUES = 200_000;

const NUMBER_TEXT = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/;

export type Members = ReadonlyMap<string, JsonNode>;

/** Where a value stands in its body. */
interface Place {
  readonly body: string;
  readonly at: number;
  /** The offset of the value's name; `at` for a value without a name. */
  readonly nameAt: number;
}

/**
 * A value of a JSON body. It knows its place, because Elasticsearch names the line and column of a fault. Values are read as leniently as
 * Elasticsearch reads them: "5" is a number, "true" is a boolean, 7 is a text. The readers throw an ElasticsearchError that begins with
 * `what`, such as `[size]`.
 */
export class JsonNode {
  readonly value: Map<string, JsonNode> | JsonNode[] | string | number | boolean | null;
  readonly #place: Place;
  /** A number as it was written, because ids may exceed 2^53. */
  readonly #digits: string;

  constructor(value: JsonNode['value'], place: Place, digits = '') {
    this.value = value;
    this.#place = place;
    this.#digits = digits;
  }

  /** The members of an object; undefined for another value. */
  get members(): Members | undefined {
    return this.value instanceof Map ? this.value : undefined;
  }

  /** The items of an array, or a single value as the only item. */
  get items(): readonly JsonNode[] {
    return Array.isArray(this.value) ? this.value : [this];
  }

  /** A string, a number or a boolean as it was written; undefined for another value. */
  get scalar(): string | undefined {
    if (typeof this.value === 'number') return this.#digits;
    return typeof this.value === 'string' || typeof this.value === 'boolean' ? String(this.value) : undefined;
  }

  /** The name of the value's first token in Elasticsearch's messages. */
  get token(): string {
    if (this.value instanceof Map) return 'START_OBJECT';
    if (Array.isArray(this.value)) return 'START_ARRAY';
    return this.value === null ? 'VALUE_NULL' : `VALUE_${(typeof this.value).toUpperCase()}`;
  }

  get location(): Location {
    return locationOf(this.#place.body, this.#place.at);
  }

  get nameLocation(): Location {
    return locationOf(this.#place.body, this.#place.nameAt);
  }

  object(what: string): Members {
    if (this.members !== undefined) return this.members;
    throw this.#wrong(what, 'an object');
  }

  text(what: string): string {
    if (this.scalar !== undefined) return this.scalar;
    throw this.#wrong(what, 'a string');
  }

  number(what: string): number {
    const value = typeof this.value === 'string' ? parseNumber(this.value) : this.value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    throw this.#wrong(what, 'a number');
  }

  /** A whole number; a fraction is cut, as Elasticsearch does. */
  integer(what: string): number {
    const value = Math.trunc(this.number(what));
    if (Math.abs(value) < 2 ** 31) return value;
    throw this.fault(`${what} is out of the range of an integer`);
  }

  boolean(what: string): boolean {
    if (this.value === true || this.value === 'true') return true;
    if (this.value === false || this.value === 'false') return false;
    throw this.#wrong(what, 'a boolean');
  }

  /** @param more further members of the error. */
  fault(reason: string, more: object = {}): ElasticsearchError {
    const root = { type: 'parsing_exception', reason, ...this.location };
    return new ElasticsearchError(400, { ...root, ...more }, root);
  }

  #wrong(what: string, expected: string): ElasticsearchError {
    return this.fault(`${what} must be ${expected}, but is ${this.token}`);
  }
}

/** The number in a text; NaN if it has none. */
export function parseNumber(text: string): number {
  return NUMBER_TEXT.test(text) ? Number(text) : Number.NaN;
}

/** @throws ElasticsearchError for text that is not JSON, repeated member names, and values beyond the limits. */
export function parseJson(text: string): JsonNode {
  return new Reader(text).read();
}

function locationOf(text: string, at: number): Location {
  const before = text.slice(0, at);
  return { line: before.split('\n').length, col: at - (before.lastIndexOf('\n') + 1) + 1 };
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERALS = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const;

class Reader {
  readonly #text: string;
  #at = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): JsonNode {
    const node = this.#value(1);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected();
    return node;
  }

  #value(depth: number, nameAt?: number): JsonNode {
    this.#skipSpace();
    const at = this.#at;
    const place = { body: this.#text, at, nameAt: nameAt ?? at };
    if (depth > MAX_DEPTH) throw this.#fault(`a value is nested deeper than ${MAX_DEPTH} levels`);
    if (++this.#values > MAX_VALUES) throw this.#fault(`a body may have at most ${MAX_VALUES} values`);
    const character = this.#text[at];
    if (character === '{') return new JsonNode(this.#members(depth), place);
    if (character === '[') return new JsonNode(this.#items(depth), place);
    if (character === '"') return new JsonNode(this.#string(), place);
    for (const [word, value] of LITERALS) {
      if (!this.#text.startsWith(word, at)) continue;
      this.#at += word.length;
      return new JsonNode(value, place);
    }
    NUMBER.lastIndex = at;
    const digits = NUMBER.exec(this.#text)?.[0];
    if (digits === undefined) throw this.#unexpected();
    this.#at += digits.length;
    return new JsonNode(Number(digits), place, digits);
  }

  #members(depth: number): Map<string, JsonNode> {
    const members = new Map<string, JsonNode>();
    this.#at++;
    for (this.#skipSpace(); this.#text[this.#at] !== '}'; this.#skipSpace()) {
      if (members.size > 0) this.#take(',');
      this.#skipSpace();
      const at = this.#at;
      const name = this.#string();
      if (members.has(name)) {
        this.#at = at;
        throw this.#fault(`Duplicate field '${name.slice(0, 100)}'`);
      }
      this.#skipSpace();
      this.#take(':');
      members.set(name, this.#value(depth + 1, at));
    }
    this.#at++;
    return members;
  }

  #items(depth: number): JsonNode[] {
    const items: JsonNode[] = [];
    this.#at++;
    for (this.#skipSpace(); this.#text[this.#at] !== ']'; this.#skipSpace()) {
      if (items.length > 0) this.#take(',');
      items.push(this.#value(depth + 1));
    }
    this.#at++;
    return items;
  }

  #string(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') throw this.#unexpected();
    let end = start + 1;
    while (this.#text[end] !== '"') {
      if (this.#text[end] === undefined) {
        this.#at = end;
        throw this.#unexpected();
      }
      end += this.#text[end] === '\\' ? 2 : 1;
    }
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(start, end + 1)) as string;
    } catch {
      this.#at = start;
      throw this.#fault('a string has a control character or an escape that JSON does not have');
    }
  }

  #take(character: string): void {
    if (this.#text[this.#at] !== character) throw this.#unexpected();
    this.#at++;
  }

  #skipSpace(): void {
    while (' \n\r\t'.includes(this.#text[this.#at] ?? '-')) this.#at++;
  }

  #unexpected(): ElasticsearchError {
    const character = this.#text[this.#at];
    if (character !== undefined) return this.#fault(`Unexpected character (${JSON.stringify(character)})`);
    const { line, col } = locationOf(this.#text, this.#at);
    return new ElasticsearchError(400, {
      type: 'x_content_e_o_f_exception',
      reason: `[${line}:${col}] Unexpected end-of-input`,
    });
  }

  #fault(what: string): ElasticsearchError {
    return contentException(locationOf(this.#text, this.#at), what);
  }
}
