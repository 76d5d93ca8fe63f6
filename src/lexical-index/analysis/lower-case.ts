import { LOWER_CASE_RUNS } from './unicode-tables.ts';

const MAPPING = makeMapping();

/**
 * Lower-cases like Java's `Character.toLowerCase(int)`: each code point by itself, with its simple mapping. JavaScript's
 * `toLowerCase` differs for a final sigma, which it maps by context, and for U+0130, which it maps to two code points.
 */
export function lowerCase(term: string): string {
  let result = '';
  for (const character of term) {
    const code = character.codePointAt(0)!;
    const lower = MAPPING.get(code);
    result += lower === undefined ? character : String.fromCodePoint(lower);
  }
  return result;
}

function makeMapping(): ReadonlyMap<number, number> {
  const mapping = new Map<number, number>();
  for (let i = 0; i < LOWER_CASE_RUNS.length; i += 4) {
    const [first, last, step, difference] = LOWER_CASE_RUNS.subarray(i, i + 4) as unknown as [
      number,
      number,
      number,
      number,
    ];
    for (let code = first; code <= last; code += step) mapping.set(code, code + difference);
  }
  return mapping;
}
