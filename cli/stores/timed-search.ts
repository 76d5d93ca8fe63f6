import { closeAll } from '../../src/base/system/close-all.ts';
import type { PublishedIndex } from '../../src/stores/published/open-stored.ts';
import { lines } from '../output/lines.ts';

const TRIALS = 5;

/** Opens a published index, and measures the median time of a search for 10 rows, in milliseconds. */
export async function timedSearch(opening: Promise<PublishedIndex>): Promise<number> {
  const published = await opening;
  let index: ReturnType<PublishedIndex['openVectors']> | undefined;
  try {
    index = published.openVectors();
    const times: number[] = [];
    const queries = Float32Array.from({ length: index.dimension }, (_, j) => (j === 0 ? 1 : 0));
    for (let i = 0; i < TRIALS; i++) {
      const start = performance.now();
      await index.search({ queries, count: 1, k: 10 });
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[Math.floor(TRIALS / 2)]!;
  } finally {
    await closeAll(index, published);
  }
}

/** The last lines of `trawl doctor` about a store. */
export function stateLines({ searchMs, problems }: { searchMs: number | null; problems: readonly string[] }): string[] {
  return lines(
    searchMs !== null && `  search        ${searchMs.toFixed(1)} ms for 10 rows, one query at a time`,
    problems.length === 0 && '  state         complete and ready',
    ...problems.map((problem) => `  problem       ${problem}`),
  );
}
