import { TrawlError } from '../../base/errors.ts';

/**
 * The number of the CUDA device on which vectors are searched, from `cuda` (the first) or `cuda:1`; undefined for `cpu`.
 *
 * @throws TrawlError CONFIG_INVALID.
 */
export function parseSearchDevice(text: string): number | undefined {
  if (text === 'cpu') return undefined;
  const match = /^cuda(?::(\d{1,3}))?$/.exec(text);
  if (match !== null) return Number(match[1] ?? 0);
  throw new TrawlError(
    'CONFIG_INVALID',
    `search-device is ${JSON.stringify(text)}; expected cpu, cuda, or one CUDA device such as cuda:1.`,
  );
}
