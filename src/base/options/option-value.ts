import { TrawlError } from '../errors.ts';
import type { OptionSpec } from './option-spec.ts';

/**
 * Converts the strings of a command line or an environment variable to the option's value.
 *
 * @throws TrawlError `code` with `where` (the option or variable), its value, and the expected values.
 */
export function optionValue(
  spec: OptionSpec,
  texts: readonly string[],
  code: 'USAGE' | 'CONFIG_INVALID',
  where: string,
): unknown {
  if (spec.type === 'list') return Object.freeze([...texts]);
  const text = texts.at(-1)!;
  const refuse = (expected: string): TrawlError =>
    new TrawlError(code, `${where} is ${JSON.stringify(text)}; expected ${expected}.`);
  switch (spec.type) {
    case 'string':
      return text;
    case 'flag':
      if (/^(1|true|yes|on)$/i.test(text)) return true;
      if (/^(0|false|no|off)$/i.test(text)) return false;
      throw refuse('true or false');
    case 'choice':
      if (spec.choices.includes(text)) return text;
      throw refuse(`one of ${spec.choices.join(', ')}`);
    case 'integer': {
      const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = spec;
      const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      throw refuse(wholeNumber(spec));
    }
    default:
      throw new TypeError(`unknown option type: ${spec satisfies never}`);
  }
}

function wholeNumber({ min, max }: { readonly min?: number; readonly max?: number }): string {
  if (min !== undefined && max !== undefined) return `a whole number from ${min} to ${max}`;
  if (min !== undefined) return `a whole number of at least ${min}`;
  return max === undefined ? 'a whole number' : `a whole number of at most ${max}`;
}
