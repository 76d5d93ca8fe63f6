import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';

/** Leaves room for the rest of a body around a value. */
const VALUE_BYTES = DEFAULT_SERVER_CONFIG.maxBodyBytes - 4_096;
/** Of the values that take less time. */
const SHORTER_BYTES = 2 ** 20;

/** A value of about `bytes`: `unit` repeated between `start` and `end`. */
function filledTo(bytes: number, unit: string, start = '', end = ''): string {
  return start + unit.repeat(Math.floor((bytes - start.length - end.length) / Buffer.byteLength(unit))) + end;
}

export const filled = filledTo.bind(undefined, VALUE_BYTES);
export const shorter = filledTo.bind(undefined, SHORTER_BYTES);

/** JSON values of nearly the body limit, each a worst case for some parser. */
export const VALUES: Readonly<Record<string, (fill?: typeof filled) => string>> = {
  'a text': (fill = filled) => fill('a', '"', '"'),
  'a text of letters beyond U+FFFF': (fill = filled) => fill('\u{10437}', '"', '"'),
  'a text of escapes': (fill = filled) => fill('\\u0301', '"', '"'),
  'a text of lone surrogates': (fill = filled) => fill('\\ud800', '"', '"'),
  'a text of quotes': (fill = filled) => fill('\\"', '"', '"'),
  'a text that is nearly a number': (fill = filled) => fill(' ', '" 1', 'x"'),
  'a number in groups of digits': (fill = filled) => fill('_1', '"1', '"'),
  'a number as text': (fill = filled) => fill('1', '"', '"'),
  'a number': (fill = filled) => fill('1'),
  'a URL': (fill = filled) => fill('/index.php', '"http://x', '?a"'),
  "a model's name": (fill = filled) => fill('-query', '"m', 'x"'),
  'a list of empty texts': (fill = filled) => fill('"",', '[', '""]'),
  'a list of numbers': (fill = filled) => fill('0,', '[', '0]'),
  'a list of long texts': () =>
    `[${Array(15)
      .fill(`"${'é'.repeat(499_999)}"`)
      .join(',')}]`,
  'many short texts': () =>
    `[${Array(19_999)
      .fill(`"${'x '.repeat(400)}"`)
      .join(',')}]`,
  'an object with a long name': (fill = filled) => fill('k', '{"', '":0}'),
};
export const NAMES = Object.keys(VALUES);

/** Values that JSON.parse takes long for, so each is sent once. */
export const SLOW_VALUES: Readonly<Record<string, () => string>> = {
  'a list of lists': () => filled('[],', '[', '[]]'),
  'a list of objects': () => filled('{},', '[', '{}]'),
  'an object of many fields'() {
    const fields = Array.from({ length: 800_000 }, (_, i) => `"${i}field":0`);
    return `{${fields.join(',')}}`;
  },
};
