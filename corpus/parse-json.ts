import { jsonFault } from '../src/base/files/read-json.ts';
import { parseIntegers } from '../src/index/passages/exact-numbers.ts';

type ParsedJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

/** Parses JSON text with `parseIntegers`. */
export function parseJson(text: string): ParsedJson {
  try {
    return { ok: true, value: parseIntegers(text) };
  } catch (error) {
    // The exact parser ran out of stack.
    if (error instanceof RangeError) return { ok: false, reason: 'not usable JSON (nested too deeply)' };
    return { ok: false, reason: `not valid JSON (${jsonFault(text, error)})` };
  }
}
