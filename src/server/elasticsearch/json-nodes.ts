import { ElasticsearchError, type Location, parsingException } from './elasticsearch-error.ts';

/**
 * A value of a JSON body with its place, because Elasticsearch names the line and column of a fault. Numbers keep their text: ids
 * may exceed 2^53. `names` has the places of an object's names.
 */
export type JsonNode = { readonly at: number } & (
  | {
      readonly type: 'object';
      readonly members: ReadonlyMap<string, JsonNode>;
      readonly names: ReadonlyMap<string, number>;
    }
  | { readonly type: 'array'; readonly items: readonly JsonNode[] }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number; readonly text: string }
  | { readonly type: 'boolean'; readonly value: boolean }
  | { readonly type: 'null' }
);
export type ObjectNode = Extract<JsonNode, { readonly type: 'object' }>;

/** Bodies need about a dozen levels. Deeper ones could overflow the stack. */
const MAX_DEPTH = 64;
/** Reading this many values takes about as long as a search may occupy the event loop. */
const MAX_VALUES = 200_000;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERALS = [
  ['true', { type: 'boolean', value: true }],
  ['false', { type: 'boolean', value: false }],
  ['null', { type: 'null' }],
] as const;

/** A parsed body, which finds the line and column of its values. */
export class JsonBody {
  readonly root: JsonNode;
  readonly #text: string;

  /** @throws ElasticsearchError for text that is not JSON, repeated member names, and values beyond the limits. */
  constructor(text: string) {
    this.#text = text;
    this.root = new Reader(text, (at) => this.locate(at)).read();
  }

  locate(at: number): Location {
    return locationOf(this.#text, at);
  }

  /** A `parsing_exception` at a value. */
  fault(node: Pick<JsonNode, 'at'>, reason: string, more: Readonly<Record<string, unknown>> = {}): ElasticsearchError {
    return parsingException(reason, this.locate(node.at), more);
  }
}

function locationOf(text: string, at: number): Location {
  const before = text.slice(0, at);
  return { line: before.split('\n').length, col: at - (before.lastIndexOf('\n') + 1) + 1 };
}

class Reader {
  readonly #text: string;
  readonly #locate: (at: number) => Location;
  #at = 0;
  #values = 0;

  constructor(text: string, locate: (at: number) => Location) {
    this.#text = text;
    this.#locate = locate;
  }

  read(): JsonNode {
    const node = this.#value(1);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected();
    return node;
  }

  #value(depth: number): JsonNode {
    this.#skipSpace();
    const at = this.#at;
    if (depth > MAX_DEPTH) throw this.#fault(`a value is nested deeper than ${MAX_DEPTH} levels`);
    if (++this.#values > MAX_VALUES) throw this.#fault(`a body may have at most ${MAX_VALUES} values`);
    const character = this.#text[at];
    if (character === '{') return { type: 'object', at, ...this.#members(depth) };
    if (character === '[') return { type: 'array', at, items: this.#items(depth) };
    if (character === '"') return { type: 'string', at, value: this.#string() };
    for (const [word, value] of LITERALS) {
      if (!this.#text.startsWith(word, at)) continue;
      this.#at += word.length;
      return { ...value, at };
    }
    NUMBER.lastIndex = at;
    const text = NUMBER.exec(this.#text)?.[0];
    if (text === undefined) throw this.#unexpected();
    this.#at += text.length;
    return { type: 'number', at, value: Number(text), text };
  }

  #members(depth: number): Pick<ObjectNode, 'members' | 'names'> {
    const members = new Map<string, JsonNode>();
    const names = new Map<string, number>();
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
      names.set(name, at);
      members.set(name, this.#value(depth + 1));
    }
    this.#at++;
    return { members, names };
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
    const { line, col } = this.#locate(this.#at);
    return new ElasticsearchError(400, {
      type: 'x_content_e_o_f_exception',
      reason: `[${line}:${col}] Unexpected end-of-input`,
    });
  }

  #fault(what: string): ElasticsearchError {
    const { line, col } = this.#locate(this.#at);
    return new ElasticsearchError(400, { type: 'x_content_parse_exception', reason: `[${line}:${col}] ${what}` });
  }
}
