import { isUtf8 } from 'node:buffer';

/** A number that is written with this text, because a float64 may not hold it. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON value; bigint for integers beyond 2^53. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | ExactNumber
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/**
 * Converts values of a columnar file to JSON: dates to ISO 8601 strings, bytes to text if they are UTF-8 and to base64
 * otherwise, typed arrays to arrays; NaN, infinities, invalid dates and undefined to null.
 */
export function toJsonValue(value: unknown): JsonValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    case 'number':
      if (!Number.isFinite(value)) return null;
      // Without a fraction, a float64 beyond 2^53 would be read as an exact integer, with digits that it does not have.
      return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21
        ? new ExactNumber(`${BigInt(value)}.0`)
        : value;
    case 'object':
      return value === null ? null : objectToJsonValue(value);
    default:
      return null;
  }
}

function objectToJsonValue(value: object): JsonValue {
  if (value instanceof ExactNumber) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return bytesToText(value);
  if (value instanceof Map) return toObject(value.entries());
  if (Array.isArray(value)) return value.map(toJsonValue);
  if (ArrayBuffer.isView(value) && Symbol.iterator in value) {
    return Array.from(value as unknown as Iterable<unknown>, toJsonValue);
  }
  return toObject(Object.entries(value));
}

/** `fromEntries` defines own properties, so a column may be named `__proto__`. */
function toObject(entries: Iterable<[unknown, unknown]>): JsonValue {
  return Object.fromEntries(Array.from(entries, ([key, member]) => [String(key), toJsonValue(member)]));
}

function bytesToText(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isUtf8(buffer) ? 'utf8' : 'base64');
}

/** JSON text on one line, with exact integers of any size. */
export function jsonText(value: JsonValue): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (value instanceof ExactNumber) return value.text;
  if (isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${jsonText(member)}`);
  return `{${members.join(',')}}`;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
