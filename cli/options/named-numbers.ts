import { TrawlError } from '../../src/base/errors.ts';
import { numberFrom } from './number-from.ts';

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
      throw new TrawlError('USAGE', `--${option} is ${JSON.stringify(text)}; ${expected}`);
    }
    found[name] = numberFrom(option, number, { max, name });
  }
  return found;
}
