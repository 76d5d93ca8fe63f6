/** Part of ECMAScript 2026; TypeScript's library does not declare it yet. */
type Reviver = (key: string, value: unknown, context: { readonly source: string }) => unknown;
interface JsonWithSources {
  parse(text: string, reviver: Reviver): unknown;
  /** A value that `JSON.stringify` writes as `text`. */
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as JsonWithSources;

/** Parses JSON, with `parseNumber` for the text of each number. Of repeated keys the last counts. */
export function parseNumbers(text: string, parseNumber: (source: string) => unknown): unknown {
  return json.parse(text, (_, value, { source }) => (typeof value === 'number' ? parseNumber(source) : value));
}

/** Limit for integers that become a bigint. */
export const MAX_INTEGER_DIGITS = 1000;

/**
 * Parses JSON with exact integers: a bigint beyond 2^53. Only texts with such a number go through the slow parser, after `JSON.parse`. Of
 * repeated keys the last counts.
 */
export function parseIntegers(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasRoundedNumber(value)
    ? parseNumbers(text, (source) => (/^-?\d+$/.test(source) ? exactInteger(source) : null) ?? Number(source))
    : value;
}

/** Parses decimal digits exactly, to a bigint beyond 2^53; null if there are too many digits. */
export function exactInteger(digits: string): number | bigint | null {
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  return digits.length <= MAX_INTEGER_DIGITS ? BigInt(digits) : null;
}

function hasRoundedNumber(value: unknown): boolean {
  // `JSON.parse` gives Infinity for an integer of several hundred digits.
  if (typeof value === 'number')
    return !Number.isSafeInteger(value) && (Number.isInteger(value) || !Number.isFinite(value));
  return typeof value === 'object' && value !== null && Object.values(value).some(hasRoundedNumber);
}

/** Parses JSON so that `JSON.stringify` writes each number with its original text. */
export function parseKeepingNumbers(text: string): unknown {
  return parseNumbers(text, (source) => json.rawJSON(source));
}

/** Parses JSON. A number whose text JavaScript would write in another way is kept as `parseKeepingNumbers` does. */
export function parseExactly(text: string): unknown {
  return parseNumbers(text, (source) => {
    const number = Number(source);
    return String(number) === source ? number : json.rawJSON(source);
  });
}
