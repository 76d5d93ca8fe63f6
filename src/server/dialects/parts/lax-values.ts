/** A value as pydantic's lax mode parses it, or pydantic's error type and message. */
export type LaxResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly type: string; readonly msg: string };

/** "2", " 2 ", "+2", "2.0" and "1_000"; not "2.5", "2.", "1e2" or "0x2". */
const INTEGER_TEXT = /^\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*$/;
/** Pydantic's limit. Without a limit the regular expression would overflow its stack. */
const MAX_INTEGER_CHARACTERS = 4_300;

const TRUE_TEXTS = new Set(['1', 'true', 't', 'yes', 'y', 'on']);
const FALSE_TEXTS = new Set(['0', 'false', 'f', 'no', 'n', 'off']);

/** Compared with pydantic 2 value by value in test/server/lax-values.test.ts. */
export function laxInteger(value: unknown): LaxResult<number> {
  switch (typeof value) {
    case 'boolean':
      return { ok: true, value: value ? 1 : 0 };
    case 'number':
      // JSON.parse turns an integer beyond the range of doubles into Infinity.
      if (Number.isInteger(value) || !Number.isFinite(value)) return { ok: true, value };
      return fail('int_from_float', 'Input should be a valid integer, got a number with a fractional part');
    case 'string':
      if (value.length > MAX_INTEGER_CHARACTERS) {
        return fail('int_parsing_size', 'Unable to parse input string as an integer, exceeded maximum size');
      }
      if (INTEGER_TEXT.test(value)) return { ok: true, value: Number(value.replaceAll('_', '')) };
      return fail('int_parsing', 'Input should be a valid integer, unable to parse string as an integer');
    default:
      return fail('int_type', 'Input should be a valid integer');
  }
}

export function laxBoolean(value: unknown): LaxResult<boolean> {
  const unreadable = fail('bool_parsing', 'Input should be a valid boolean, unable to interpret input');
  switch (typeof value) {
    case 'boolean':
      return { ok: true, value };
    case 'number':
      if (value === 0 || value === 1) return { ok: true, value: value === 1 };
      return Number.isInteger(value) ? unreadable : fail('bool_type', 'Input should be a valid boolean');
    case 'string': {
      const text = value.toLowerCase();
      if (TRUE_TEXTS.has(text)) return { ok: true, value: true };
      return FALSE_TEXTS.has(text) ? { ok: true, value: false } : unreadable;
    }
    default:
      return fail('bool_type', 'Input should be a valid boolean');
  }
}

/** A finite number, or a text with one ("1e-3"). */
export function laxNumber(value: unknown): LaxResult<number> {
  const read = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof read === 'number' && Number.isFinite(read)) return { ok: true, value: read };
  return typeof value === 'string'
    ? fail('float_parsing', 'Input should be a valid number, unable to parse string as a number')
    : fail('float_type', 'Input should be a valid finite number');
}

function fail(type: string, msg: string): LaxResult<never> {
  return { ok: false, type, msg };
}
