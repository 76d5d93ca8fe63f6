/** JSON of the server and of files that it wrote. */

/** Digits that may be an integer beyond 2^53; those after a decimal point, as scores have, are none. */
const LONG_INTEGER = /(?<![.\d])\d{16}|\d[eE]\+?\d/;

/**
 * Returns integers beyond 2^53 as text, in browsers whose JSON.parse gives access to the digits. Text without long integers is parsed
 * without a call for each value, because files may have 200 MiB.
 */
export function parseKeepingBigIntegers(text) {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
      ? (context?.source ?? value)
      : value,
  );
}
