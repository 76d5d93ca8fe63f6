import type { Static, TSchema } from 'typebox';
import { isObject } from '../../../base/objects.ts';
import { Issues, RequestError } from '../../errors/request-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;
type Place = readonly (string | number)[];

/** The keywords of JSON Schema that the request schemas use. */
interface Node {
  readonly type?: string;
  readonly anyOf?: readonly Node[];
  readonly enum?: readonly unknown[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
}

const SEND_AS_STRING = '; send other integers as strings, because JSON parsers round them';

/** Unknown field names are shortened to this length in messages and in the log. */
const MAX_NAME_CHARACTERS = 100;

/** An own property of the body; undefined for inherited ones such as `constructor`. */
export function field(body: JsonObject, name: string): unknown {
  return Object.hasOwn(body, name) ? body[name] : undefined;
}

export function hasField(body: unknown, ...names: readonly string[]): boolean {
  return isObject(body) && names.some((name) => field(body, name) !== undefined);
}

export interface ReadLimits {
  readonly items: number;
  /** Largest length of any text, in UTF-16 units. */
  readonly characters: number;
  /** Name of the parsed part of the request, for messages. Default: `body`. */
  readonly what?: string;
}

/**
 * Parses a body by a schema as leniently as pydantic does ("2" is an integer), and reports all faults at once with FastAPI's
 * messages. An absent field gets the schema's `default`. Unknown fields are ignored unless the schema has
 * `additionalProperties: false`.
 *
 * @throws RequestError INVALID_REQUEST; TOO_MANY_QUERIES or QUERY_TOO_LONG for a list or text over the limits.
 */
export function readRequest<Schema extends TSchema>(schema: Schema, body: unknown, most: ReadLimits): Static<Schema> {
  // A request may also be one of several types, such as an object or a list of them.
  if (!isObject(body) && (schema as Node).anyOf === undefined) {
    throw new RequestError('INVALID_REQUEST', 'The body must be a JSON object.', [
      {
        type: 'model_attributes_type',
        loc: ['body'],
        msg: 'Input should be a valid dictionary or object to extract fields from',
      },
    ]);
  }
  const issues = new Issues(most.what);
  const value = new Reader(issues, most).read(schema as Node, body, []);
  issues.throwIfAny();
  return value as Static<Schema>;
}

class Reader {
  readonly #issues: Issues;
  readonly #most: ReadLimits;

  constructor(issues: Issues, most: ReadLimits) {
    this.#issues = issues;
    this.#most = most;
  }

  read(node: Node, value: unknown, place: Place): unknown {
    if (node.anyOf !== undefined) return this.read(fitting(node.anyOf, value), value, place);
    if (node.enum !== undefined) return this.#choice(node.enum, value, place);
    switch (node.type) {
      case 'object':
        return this.#object(node, value, place);
      case 'array':
        return this.#list(node, value, place);
      case 'string':
        if (typeof value !== 'string') return this.#issue('string_type', 'a valid string', value, place);
        if (value.length > this.#most.characters) throw tooLong(value.length, this.#most.characters, place);
        return value;
      case 'integer':
        return this.#number(laxInteger(value), node, value, place);
      case 'number':
        return this.#number(laxNumber(value), node, value, place);
      case 'boolean':
        return this.#lax(laxBoolean(value), value, place);
      case 'null':
        return null;
      default:
        return value;
    }
  }

  #object(node: Node, value: unknown, place: Place): unknown {
    if (!isObject(value)) return this.#issue('dict_type', 'a valid dictionary', value, place);
    const properties = node.properties ?? {};
    const result: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(properties)) {
      const found = field(value, name);
      if (found !== undefined) result[name] = this.read(member, found, [...place, name]);
      else if ('default' in member) result[name] = member.default;
      else if (node.required?.includes(name) === true) {
        this.#issues.add('missing', [...place, name], 'Field required', undefined);
      }
    }
    if (node.additionalProperties === false) {
      const known = Object.keys(properties);
      const msg = `Unknown field; expected ${known.join(', ')}`;
      for (const name of Object.keys(value)) {
        if (Object.hasOwn(properties, name)) continue;
        this.#issues.add('extra_forbidden', [...place, name.slice(0, MAX_NAME_CHARACTERS)], msg, undefined);
      }
    }
    return result;
  }

  #list(node: Node, value: unknown, place: Place): unknown {
    if (!Array.isArray(value)) return this.#issue('list_type', 'a valid list', value, place);
    if (value.length > this.#most.items) throw tooMany(value.length, this.#most.items, place);
    if (value.length < (node.minItems ?? 0)) {
      return this.#issue('too_short', `a list of at least ${node.minItems} items`, undefined, place);
    }
    const { items } = node;
    if (items === undefined) return value;
    // Lists of texts are checked without copying, because lists of ten thousand texts are common.
    if (items.type === 'string') {
      const { characters } = this.#most;
      for (let i = 0; i < value.length; i++) {
        const item: unknown = value[i];
        if (typeof item !== 'string' || item.length > characters) this.read(items, item, [...place, i]);
      }
      return value;
    }
    return value.map((item, i) => this.read(items, item, [...place, i]));
  }

  #choice(choices: readonly unknown[], value: unknown, place: Place): unknown {
    if (choices.includes(value)) return value;
    return this.#issue('literal_error', choices.map((choice) => `'${choice}'`).join(' or '), value, place);
  }

  #number(read: number | Fault, { minimum, maximum }: Node, value: unknown, place: Place): unknown {
    if (typeof read === 'number' && minimum !== undefined && read < minimum) {
      const hint = minimum === Number.MIN_SAFE_INTEGER ? SEND_AS_STRING : '';
      return this.#issue('greater_than_equal', `greater than or equal to ${minimum}${hint}`, value, place);
    }
    if (typeof read === 'number' && maximum !== undefined && read > maximum) {
      const hint = maximum === Number.MAX_SAFE_INTEGER ? SEND_AS_STRING : '';
      return this.#issue('less_than_equal', `less than or equal to ${maximum}${hint}`, value, place);
    }
    return this.#lax(read, value, place);
  }

  #lax(read: number | boolean | Fault, value: unknown, place: Place): unknown {
    if (typeof read !== 'object') return read;
    this.#issues.add(read.type, place, read.msg, value);
    return undefined;
  }

  #issue(type: string, expected: string, value: unknown, place: Place): undefined {
    this.#issues.add(type, place, `Input should be ${expected}`, value);
  }
}

/** The alternative that matches a value's type. Without a match, the first one that is not null, which reports the fault. */
function fitting(nodes: readonly Node[], value: unknown): Node {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const fits = (node: Node): boolean => node.type === type || (type === 'number' && node.type === 'integer');
  return nodes.find(fits) ?? nodes.find((node) => node.type !== 'null')!;
}

function tooLong(length: number, most: number, place: Place): RequestError {
  const reason = `${place.join('.')} has ${length} characters; the limit of this server is ${most}.`;
  return new RequestError('QUERY_TOO_LONG', `${reason} Shorten it.`, [
    { type: 'string_too_long', loc: ['body', ...place], msg: reason },
  ]);
}

function tooMany(count: number, most: number, place: Place): RequestError {
  const name = place.at(-1) === 'queries' ? 'queries' : `entries in ${place.join('.')}`;
  const reason = `The request has ${count} ${name}; the limit of this server is ${most}.`;
  return new RequestError('TOO_MANY_QUERIES', `${reason} Send them in several requests.`, [
    { type: 'too_long', loc: ['body', ...place], msg: reason },
  ]);
}

/** Why pydantic's lax mode does not parse a value: its error type and message. */
interface Fault {
  readonly type: string;
  readonly msg: string;
}

/** "2", " 2 ", "+2", "2.0" and "1_000"; not "2.5", "2.", "1e2" or "0x2". */
const INTEGER_TEXT = /^\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*$/;
/** Pydantic's limit. Without a limit the regular expression would overflow its stack. */
const MAX_INTEGER_CHARACTERS = 4_300;

const TRUE_TEXTS = new Set(['1', 'true', 't', 'yes', 'y', 'on']);
const FALSE_TEXTS = new Set(['0', 'false', 'f', 'no', 'n', 'off']);

/** Compared with pydantic 2 value by value in test/server/lax-values.test.ts. */
function laxInteger(value: unknown): number | Fault {
  switch (typeof value) {
    case 'boolean':
      return value ? 1 : 0;
    case 'number':
      // JSON.parse turns an integer beyond the range of doubles into Infinity.
      if (Number.isInteger(value) || !Number.isFinite(value)) return value;
      return { type: 'int_from_float', msg: 'Input should be a valid integer, got a number with a fractional part' };
    case 'string':
      if (value.length > MAX_INTEGER_CHARACTERS) {
        return { type: 'int_parsing_size', msg: 'Unable to parse input string as an integer, exceeded maximum size' };
      }
      if (INTEGER_TEXT.test(value)) return Number(value.replaceAll('_', ''));
      return { type: 'int_parsing', msg: 'Input should be a valid integer, unable to parse string as an integer' };
    default:
      return { type: 'int_type', msg: 'Input should be a valid integer' };
  }
}

function laxBoolean(value: unknown): boolean | Fault {
  const unreadable = { type: 'bool_parsing', msg: 'Input should be a valid boolean, unable to interpret input' };
  const notBoolean = { type: 'bool_type', msg: 'Input should be a valid boolean' };
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'number':
      if (value === 0 || value === 1) return value === 1;
      return Number.isInteger(value) ? unreadable : notBoolean;
    case 'string': {
      const text = value.toLowerCase();
      return TRUE_TEXTS.has(text) || (FALSE_TEXTS.has(text) ? false : unreadable);
    }
    default:
      return notBoolean;
  }
}

/** A finite number, or a text with one ("1e-3"). */
function laxNumber(value: unknown): number | Fault {
  const read = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof read === 'number' && Number.isFinite(read)) return read;
  return typeof value === 'string'
    ? { type: 'float_parsing', msg: 'Input should be a valid number, unable to parse string as a number' }
    : { type: 'float_type', msg: 'Input should be a valid finite number' };
}
