import type { PublishedIndex } from '../../src/stores/published/open-stored.ts';

const TRIALS = 5;

/** Median time of a search for 10 rows, in milliseconds. */
export async function timedSearch(published: PublishedIndex): Promise<number> {
  const index = published.openVectors();
  try {
    const times: number[] = [];
    const queries = Float32Array.from({ length: index.dimension }, (_, j) => (j === 0 ? 1 : 0));
    for (let i = 0; i < TRIALS; i++) {
      const start = performance.now();
      await index.search({ queries, count: 1, k: 10 });
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[Math.floor(TRIALS / 2)]!;
  } finally {
    await index.close();
  }
}
