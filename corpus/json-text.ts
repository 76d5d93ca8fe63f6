import { isUtf8 } from 'node:buffer';

/** A value that JSON text can hold; a bigint stands for an exact integer. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/**
 * Turns what a columnar file may hold into JSON values: dates become ISO 8601 strings, bytes become text where they are
 * UTF-8 and base64 otherwise, typed arrays become arrays, NaN, infinities, invalid dates and what is absent become null.
 */
export function toJsonValue(value: unknown): JsonValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'object':
      return value === null ? null : objectToJsonValue(value);
    default:
      return null;
  }
}

function objectToJsonValue(value: object): JsonValue {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return bytesToText(value);
  if (value instanceof Map) return toObject(value.entries());
  if (Array.isArray(value)) return value.map(toJsonValue);
  if (ArrayBuffer.isView(value) && Symbol.iterator in value) {
    return Array.from(value as unknown as Iterable<unknown>, toJsonValue);
  }
  return toObject(Object.entries(value));
}

/** `fromEntries` defines properties, so that a column named `__proto__` is an ordinary one. */
function toObject(entries: Iterable<[unknown, unknown]>): JsonValue {
  return Object.fromEntries(Array.from(entries, ([key, member]) => [String(key), toJsonValue(member)]));
}

function bytesToText(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isUtf8(buffer) ? 'utf8' : 'base64');
}

/** The JSON text of a value, in one line, with integers of any size exact. */
export function jsonText(value: JsonValue): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${jsonText(member)}`);
  return `{${members.join(',')}}`;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
