import { TrawlError } from '../../src/base/errors.ts';

/** Parses the value of an option, or a named part of it, as a number from 0 to `max`. @throws TrawlError USAGE. */
export function numberFrom(option: string, text: string, { max, name }: { max: number; name?: string }): number {
  const value = /^\d*\.?\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= max) return value;
  const what = name === undefined ? `--${option}` : `${name} of --${option}`;
  throw new TrawlError('USAGE', `${what} is ${JSON.stringify(text)}; expected a number from 0 to ${max}.`);
}
