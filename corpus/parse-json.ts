import { parseNumbers } from '../src/index/passages/exact-numbers.ts';

/** Limit for integers that become a bigint. Longer ids are rejected. */
export const MAX_INTEGER_DIGITS = 1000;

type ParsedJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

/**
 * Parses JSON text. Integers beyond 2^53 at its top level become exact bigints. Only texts with such a number go through the
 * slow parser, after `JSON.parse`. Of repeated keys the last counts.
 */
export function parseJson(text: string): ParsedJson {
  try {
    const value: unknown = JSON.parse(text);
    if (!hasRoundedNumber(value)) return { ok: true, value };
    return { ok: true, value: parseNumbers(text, parseNumber) };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
}

/** Parses decimal digits exactly, to a bigint beyond 2^53; null if there are too many digits. */
export function parseInteger(digits: string): number | bigint | null {
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  return digits.length <= MAX_INTEGER_DIGITS ? BigInt(digits) : null;
}

function hasRoundedNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const member of Object.values(value)) {
    // `JSON.parse` gives Infinity for an integer of several hundred digits.
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

/** The parser's message without its quotation from the text: passages do not belong in messages and logs. */
function reasonOf(error: unknown): string {
  // The exact parser ran out of stack.
  if (error instanceof RangeError) return 'not usable JSON (nested too deeply)';
  const message = error instanceof Error ? error.message : String(error);
  const plain = message.replace(/, (\.\.\.)?".*$/s, '').replace(/ \(line \d+ column \d+\)$/, '');
  return `not valid JSON (${plain})`;
}
