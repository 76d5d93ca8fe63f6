import { TrawlError } from '../src/errors.ts';

/** Parses the value of an option as a number from 0 to `max`. @throws TrawlError USAGE. */
export function numberFrom(option: string, text: string, { max }: { max: number }): number {
  const value = /^\d*\.?\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= max) return value;
  throw new TrawlError('USAGE', `--${option} is ${JSON.stringify(text)}; expected a number from 0 to ${max}.`);
}
