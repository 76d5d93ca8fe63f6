import { type ElasticsearchError, illegalArgument } from './elasticsearch-error.ts';
import type { JsonBody, JsonNode, ObjectNode } from './json-nodes.ts';

// Values are read as leniently as Elasticsearch reads them: "5" is a number, "true" is a boolean, 7 is a text.

export function objectOf(body: JsonBody, node: JsonNode, what: string): ObjectNode {
  if (node.type === 'object') return node;
  throw body.fault(node, `${what} must be an object, but is ${tokenOf(node)}`);
}

/** The items of an array, or a single value as the only item. */
export function itemsOf(node: JsonNode): readonly JsonNode[] {
  return node.type === 'array' ? node.items : [node];
}

export function textOf(body: JsonBody, node: JsonNode, what: string): string {
  if (node.type === 'string') return node.value;
  if (node.type === 'number') return node.text;
  if (node.type === 'boolean') return String(node.value);
  throw body.fault(node, `${what} must be a string, but is ${tokenOf(node)}`);
}

export function numberOf(body: JsonBody, node: JsonNode, what: string): number {
  const value = node.type === 'number' ? node.value : node.type === 'string' ? numberFrom(node.value) : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw body.fault(node, `${what} must be a number, but is ${tokenOf(node)}`);
}

/** A whole number; a fraction is cut, as Elasticsearch does. */
export function integerOf(body: JsonBody, node: JsonNode, what: string): number {
  const value = Math.trunc(numberOf(body, node, what));
  if (Math.abs(value) < 2 ** 31) return value;
  throw body.fault(node, `${what} is out of the range of an integer`);
}

export function booleanOf(body: JsonBody, node: JsonNode, what: string): boolean {
  if (node.type === 'boolean') return node.value;
  if (node.type === 'string' && (node.value === 'true' || node.value === 'false')) return node.value === 'true';
  throw body.fault(node, `${what} must be a boolean, but is ${tokenOf(node)}`);
}

/** The name of a value's first token in Elasticsearch's messages. */
export function tokenOf(node: JsonNode): string {
  const names = {
    object: 'START_OBJECT',
    array: 'START_ARRAY',
    string: 'VALUE_STRING',
    number: 'VALUE_NUMBER',
    boolean: 'VALUE_BOOLEAN',
    null: 'VALUE_NULL',
  } as const;
  return names[node.type];
}

/** An integer of a parameter in the URL. @throws ElasticsearchError */
export function integerFrom(text: string, name: string): number {
  const value = numberFrom(text);
  if (Number.isSafeInteger(value)) return value;
  throw notParsed(text, name, 'an int');
}

export function booleanFrom(text: string, name: string): boolean {
  // A parameter without a value is true: `?pretty`.
  if (text === 'true' || text === '') return true;
  if (text === 'false') return false;
  throw notParsed(text, name, 'a boolean: only [true] or [false] are allowed');
}

function notParsed(text: string, name: string, as: string): ElasticsearchError {
  return illegalArgument(`Failed to parse value [${text.slice(0, 100)}] of the parameter [${name}] as ${as}`);
}

function numberFrom(text: string): number {
  return /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(text) ? Number(text) : Number.NaN;
}
