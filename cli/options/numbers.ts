import { usageError } from '../../src/base/errors.ts';

/** Parses the value of an option, or a named part of it, as a number from 0 to `max`. @throws TrawlError USAGE. */
export function numberFrom(option: string, text: string, { max, name }: { max: number; name?: string }): number {
  const value = /^\d*\.?\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= max) return value;
  const what = name === undefined ? `--${option}` : `${name} of --${option}`;
  throw usageError(`${what} is ${JSON.stringify(text)}; expected a number from 0 to ${max}.`);
}

/**
 * Parses the value of an option as numbers from 0 to `max` with names, such as title=2,text=1. Names may be absent.
 *
 * @throws TrawlError USAGE for an unknown or repeated name.
 */
export function namedNumbers<Name extends string>(
  option: string,
  text: string,
  { names, max, example }: { names: readonly Name[]; max: number; example: string },
): Partial<Record<Name, number>> {
  const found: Partial<Record<Name, number>> = {};
  for (const part of text.split(',')) {
    const [given, number = '', ...more] = part.split('=').map((side) => side.trim());
    const name = names.find((known) => known === given);
    if (name === undefined || name in found || more.length > 0) {
      const expected = `expected ${names.join(' and ')} at most once each, as in ${example}.`;
      throw usageError(`--${option} is ${JSON.stringify(text)}; ${expected}`);
    }
    found[name] = numberFrom(option, number, { max, name });
  }
  return found;
}

/** The value of an option that is a share of something, from 0 to 1; undefined if it is not given. @throws TrawlError USAGE. */
export function shareOption<Name extends string>(
  options: Readonly<Record<Name, string | undefined>>,
  name: Name,
): number | undefined {
  const text = options[name];
  return text === undefined ? undefined : numberFrom(name, text, { max: 1 });
}

/** The limits on a new index that `trawl iterate` and `trawl admin rollout` have in common. @throws TrawlError USAGE. */
export function gatesOption(
  options: Readonly<Record<'min-recall' | 'max-recall-drop' | 'max-changed' | 'max-replaced', string | undefined>>,
) {
  return {
    minRecall: shareOption(options, 'min-recall'),
    maxRecallDrop: shareOption(options, 'max-recall-drop')!,
    maxChanged: shareOption(options, 'max-changed'),
    maxReplaced: shareOption(options, 'max-replaced'),
  };
}

/** Parses the value of `--cutoffs`: values of k, ascending and each once. @throws TrawlError USAGE. */
export function parseCutoffs(text: string, max = Number.POSITIVE_INFINITY): number[] {
  const cutoffs = text.split(',').map((part) => (/^\s*\d{1,9}\s*$/.test(part) ? Number(part) : Number.NaN));
  if (cutoffs.every((k) => k >= 1 && k <= max)) return [...new Set(cutoffs)].sort((a, b) => a - b);
  throw usageError(
    `--cutoffs is ${JSON.stringify(text)}; expected whole numbers from 1${max < Number.POSITIVE_INFINITY ? ` to ${max}` : ''}, such as 1,5,10.`,
  );
}
