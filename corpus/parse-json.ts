import { parseIntegers } from '../src/index/passages/exact-numbers.ts';

type ParsedJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

/** Parses JSON text with `parseIntegers`. */
export function parseJson(text: string): ParsedJson {
  try {
    return { ok: true, value: parseIntegers(text) };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
}

/** The parser's message without its quotation from the text: passages do not belong in messages and logs. */
function reasonOf(error: unknown): string {
  // The exact parser ran out of stack.
  if (error instanceof RangeError) return 'not usable JSON (nested too deeply)';
  const message = error instanceof Error ? error.message : String(error);
  const plain = message.replace(/, (\.\.\.)?".*$/s, '').replace(/ \(line \d+ column \d+\)$/, '');
  return `not valid JSON (${plain})`;
}
