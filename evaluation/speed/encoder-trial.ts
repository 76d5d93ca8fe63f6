import type { TextEncoder } from '../../src/encoder/text-encoder.ts';

/** How fast an encoder embeds queries on this machine. */
export interface EncoderTrial {
  /** Milliseconds of a query that is embedded alone; the fastest of some. */
  readonly loneMs: number;
  /** Queries a second with many at once. */
  readonly queriesPerS: number;
  readonly tokensPerQuery: number;
}

/** Like the queries of agents: short, with names. */
const QUERIES = [
  'designer of the Eiffel Tower',
  'birthplace of the architect of the Sydney Opera House',
  'when was the treaty that ended the war signed',
  'population of the capital of Iceland in 2010',
  'who directed the 1994 film about the filmmaker Ed Wood',
  'river that flows through the city where the composer was born',
  'first woman to win a Nobel Prize in physics',
  'which band released the album before its singer left',
] as const;
const BATCH = 64;
const LONE_RUNS = 5;
/** Longest time of the batches, in milliseconds. */
const TRIAL_MS = 1_000;

/** Embeds queries for about a second, after a first call that is not timed. */
export async function tryEncoder(encoder: TextEncoder, signal?: AbortSignal): Promise<EncoderTrial> {
  const encode = async (texts: readonly string[]): Promise<{ ms: number; tokens: number }> => {
    const begun = performance.now();
    const { outcomes } = await encoder.encode(texts, {
      inputType: 'query',
      signal,
    });
    const ms = performance.now() - begun;
    return { ms, tokens: outcomes.reduce((sum, outcome) => sum + (outcome.ok ? (outcome.tokens ?? 0) : 0), 0) };
  };
  const varied = (i: number): string => `${QUERIES[i % QUERIES.length]!} ${i}`;
  await encode([varied(0)]);
  let loneMs = Number.POSITIVE_INFINITY;
  for (let i = 1; i <= LONE_RUNS; i++) loneMs = Math.min(loneMs, (await encode([varied(i)])).ms);
  let [queries, ms, tokens] = [0, 0, 0];
  while (ms < TRIAL_MS) {
    const texts = Array.from({ length: BATCH }, (_, i) => varied(queries + i));
    const batch = await encode(texts);
    queries += BATCH;
    ms += batch.ms;
    tokens += batch.tokens;
  }
  return { loneMs, queriesPerS: queries / (ms / 1000), tokensPerQuery: tokens / queries };
}
