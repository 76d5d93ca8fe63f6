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
