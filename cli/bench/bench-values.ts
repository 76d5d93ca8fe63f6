import { usageError } from '../../src/base/errors.ts';

/** Parses whole numbers from 1, such as `1,16,64`; drops repetitions. */
export function parseCounts(text: string, option = '--queries'): number[] {
  const counts = text.split(',').map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (counts.every((count) => count >= 1 && Number.isSafeInteger(count))) return [...new Set(counts)];
  throw usageError(`${option} is ${JSON.stringify(text)}; expected whole numbers from 1, such as 1,16,64.`);
}

/** Parses numbers from 0, separated by commas. @throws TrawlError USAGE. */
export function parseNumbers(
  option: string,
  text: string,
  { max, whole }: { readonly max: number; readonly whole: boolean },
): number[] {
  const numbers = text.split(',').map((part) => (/^\s*\d+(\.\d+)?\s*$/.test(part) ? Number(part) : Number.NaN));
  if (numbers.every((number) => number <= max && (!whole || Number.isInteger(number)))) return [...new Set(numbers)];
  throw usageError(
    `--${option} is ${JSON.stringify(text)}; expected ${whole ? 'whole ' : ''}numbers from 0 to ${max}, such as 1,10.`,
  );
}

/**
 * Parses names separated by `separator`. Undefined gives all `known` names; `none`, if allowed, gives no name.
 *
 * @throws TrawlError USAGE with the option and the known names.
 */
export function parseNames<Name extends string>(
  option: string,
  text: string | undefined,
  known: readonly Name[],
  { none = false, separator = ',' }: { none?: boolean; separator?: string } = {},
): Name[] {
  if (text === undefined) return [...known];
  if (none && text === 'none') return [];
  return [...new Set(text.split(separator).map((part) => part.trim()))].map((part) => {
    const found = known.find((name) => name === part);
    if (found !== undefined) return found;
    throw usageError(
      `${option} is ${JSON.stringify(part)}; expected ${none ? 'none, or ' : ''}some of ${known.join(`${separator} `)}.`,
    );
  });
}

/** Parses a number of 10^9 bytes per second; null if not given. */
export function parseBandwidth(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (value > 0) return value;
  throw usageError(`--bandwidth-gb is ${JSON.stringify(text)}; expected a number above 0, such as 36.5.`);
}
