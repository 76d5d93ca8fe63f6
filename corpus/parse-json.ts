import { parse as parseLossless } from 'lossless-json';

/** Longest integer that is turned into a bigint; a longer one is certainly not an id. */
export const MAX_INTEGER_DIGITS = 1000;

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

/**
 * Parses one JSON text so that integers beyond 2^53 at its top level are exact: bigint. `JSON.parse` does the work
 * alone unless it met such a number, so the slow parser sees hardly any line. Of a key that comes twice the last counts.
 */
export function parseJson(text: string): ParsedJson {
  try {
    const value: unknown = JSON.parse(text);
    if (!hasRoundedNumber(value)) return { ok: true, value };
    return { ok: true, value: parseLossless(text, null, { parseNumber, onDuplicateKey: ({ newValue }) => newValue }) };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
}

/** The exact value of an integer's decimal text: a number up to 2^53, a bigint beyond; null where it is too long. */
export function parseInteger(digits: string): number | bigint | null {
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  return digits.length <= MAX_INTEGER_DIGITS ? BigInt(digits) : null;
}

function hasRoundedNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const member of Object.values(value)) {
    // Infinity is what `JSON.parse` makes of a number of several hundred digits.
    if (typeof member === 'number' && !Number.isSafeInteger(member) && !hasFraction(member)) return true;
  }
  return false;
}

function hasFraction(value: number): boolean {
  return Number.isFinite(value) && !Number.isInteger(value);
}

function parseNumber(literal: string): number | bigint {
  if (!/^-?\d+$/.test(literal)) return Number(literal);
  return parseInteger(literal) ?? Number(literal);
}

/** The parser's message without its quotation of the line: passages do not belong in messages and logs. */
function reasonOf(error: unknown): string {
  // Nesting deeper than the stack of the slow parser.
  if (error instanceof RangeError) return 'not usable JSON (nested too deeply)';
  const message = error instanceof Error ? error.message : String(error);
  const plain = message.replace(/, (\.\.\.)?".*$/s, '').replace(/ \(line \d+ column \d+\)$/, '');
  return `not valid JSON (${plain})`;
}
