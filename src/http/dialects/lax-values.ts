/** A value as pydantic's lax mode reads it, or pydantic's name and words for why not. */
export type LaxResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly type: string; readonly msg: string };

/** "2", " 2 ", "+2", "2.0" and "1_000"; not "2.5", "2.", "1e2" or "0x2". */
const INTEGER_TEXT = /^\s*[+-]?\d+(?:_\d+)*(?:\.0+)?\s*$/;
const TRUE_TEXTS = new Set(['1', 'true', 't', 'yes', 'y', 'on']);
const FALSE_TEXTS = new Set(['0', 'false', 'f', 'no', 'n', 'off']);

/** Checked value by value against pydantic 2 (test/http/lax-values.test.ts). */
export function laxInteger(value: unknown): LaxResult<number> {
  switch (typeof value) {
    case 'boolean':
      return { ok: true, value: value ? 1 : 0 };
    case 'number':
      // A JSON number too large for a double is infinite here and an integer all the same.
      if (Number.isInteger(value) || !Number.isFinite(value)) return { ok: true, value };
      return fail('int_from_float', 'Input should be a valid integer, got a number with a fractional part');
    case 'string':
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

/** A finite number, or a text that is one ("1e-3"). */
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
