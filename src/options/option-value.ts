import { TrawlError } from '../errors.ts';
import type { OptionSpec } from './option-spec.ts';

/**
 * The value that texts from a command line or the environment have as an option.
 *
 * @throws TrawlError of the given code, naming `where` the value stands, the value, and what is allowed.
 */
export function optionValue(
  spec: OptionSpec,
  texts: readonly string[],
  code: 'USAGE' | 'CONFIG_INVALID',
  where: string,
): unknown {
  if (spec.kind === 'list') return Object.freeze([...texts]);
  const text = texts.at(-1)!;
  const refuse = (expected: string): TrawlError =>
    new TrawlError(code, `${where} is ${JSON.stringify(text)}; it has to be ${expected}.`);
  switch (spec.kind) {
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
      throw new TypeError(`unknown option kind: ${spec satisfies never}`);
  }
}

function wholeNumber({ min, max }: { readonly min?: number; readonly max?: number }): string {
  if (min !== undefined && max !== undefined) return `a whole number from ${min} to ${max}`;
  if (min !== undefined) return `a whole number of at least ${min}`;
  return max === undefined ? 'a whole number' : `a whole number of at most ${max}`;
}
