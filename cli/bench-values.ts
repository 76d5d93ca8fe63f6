import { TrawlError } from '../src/errors.ts';

/** Whole numbers from 1, as in `1,16,64`; repeated ones once. */
export function parseCounts(text: string): number[] {
  const counts = text.split(',').map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (counts.every((count) => count >= 1 && Number.isSafeInteger(count))) return [...new Set(counts)];
  throw new TrawlError(
    'USAGE',
    `--queries is ${JSON.stringify(text)}; it has to be whole numbers from 1, such as 1,16,64.`,
  );
}

/**
 * Names of `known`, separated by commas. Undefined: all of them. `none` where that is allowed: not one.
 *
 * @throws TrawlError USAGE naming the option and what there is.
 */
export function parseNames<Name extends string>(
  option: string,
  text: string | undefined,
  known: readonly Name[],
  { none = false }: { none?: boolean } = {},
): Name[] {
  if (text === undefined) return [...known];
  if (none && text === 'none') return [];
  return [...new Set(text.split(',').map((part) => part.trim()))].map((part) => {
    const found = known.find((name) => name === part);
    if (found !== undefined) return found;
    throw new TrawlError(
      'USAGE',
      `${option} names ${JSON.stringify(part)}; there are ${known.join(', ')}${none ? ', or none' : ''}.`,
    );
  });
}

/** 10^9 bytes a second; null where not given. */
export function parseBandwidth(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (value > 0) return value;
  throw new TrawlError(
    'USAGE',
    `--bandwidth-gb is ${JSON.stringify(text)}; it has to be a number above 0, such as 36.5.`,
  );
}
