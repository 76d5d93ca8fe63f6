import { LOWER_CASE_RUNS } from './unicode-tables.ts';

let mapping: ReadonlyMap<number, number> | undefined;

/**
 * Lower-cases like Java's `Character.toLowerCase(int)`: each code point by itself, with its simple mapping. JavaScript's
 * `toLowerCase` differs for a final sigma, which it maps by context, and for U+0130, which it maps to two code points.
 */
export function lowerCase(term: string): string {
  mapping ??= makeMapping();
  let result = '';
  for (const character of term) {
    const code = character.codePointAt(0)!;
    const lower = mapping.get(code);
    result += lower === undefined ? character : String.fromCodePoint(lower);
  }
  return result;
}

function makeMapping(): ReadonlyMap<number, number> {
  const made = new Map<number, number>();
  for (let i = 0; i < LOWER_CASE_RUNS.length; i += 4) {
    const [first, last, step, difference] = LOWER_CASE_RUNS.slice(i, i + 4) as [number, number, number, number];
    for (let code = first; code <= last; code += step) made.set(code, code + difference);
  }
  return made;
}
