/**
 * Whether tests with random inputs have many runs: in `npm run check -- long`, which also runs every test file that imports this one, and in
 * `npm run check -- peers --long`.
 */
export const MANY = process.env.TRAWL_TEST_RUNS === 'many';

/** The number of runs of a test with random inputs: `few` in `npm test`, `many` in `npm run check -- long`. */
export function runs(few: number, many: number): number {
  return MANY ? many : few;
}
