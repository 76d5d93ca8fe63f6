import { isDeepStrictEqual } from 'node:util';

/** Whether a JSON value is an object; lists and null are none. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A JSON value for a message, at most 60 characters. */
export function jsonExcerpt(value: unknown): string {
  if (value === undefined) return 'nothing';
  const json = JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each));
  return json.length <= 60 ? json : `${json.slice(0, 59)}…`;
}

/** The entries that are not undefined, to merge over defaults: `{ ...DEFAULTS, ...defined(options) }`. */
export function defined<T extends object>(values: T | undefined): T {
  return Object.fromEntries(Object.entries(values ?? {}).filter(([, value]) => value !== undefined)) as T;
}

/** Whether two values have the same JSON text but for the order of keys; a field that is undefined counts as absent. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(asJson(a), asJson(b));
}

function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** JSON for other programs: a lone surrogate, which UTF-8 does not have and pyarrow refuses with the whole file, becomes U+FFFD. */
export function wellFormedJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!json.includes('\\ud')) return json;
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'string' ? part.replace(/\p{Surrogate}/gu, '\ufffd') : part,
  );
}
