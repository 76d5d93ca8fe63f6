import { openBaselineScript } from '../baselines.ts';
import { openBaseline } from '../flat/baseline-engine.ts';
import type { FlatEngine } from '../flat/flat-engine.ts';

/** Programs that Trawl's exact search is compared with: one that is exact too, and two graphs. */
export const APPROXIMATE_BASELINES = ['faiss', 'faiss-hnsw', 'usearch-hnsw'] as const;
export type ApproximateBaseline = (typeof APPROXIMATE_BASELINES)[number];

/** An engine with its rows and queries loaded. One call at a time. */
export interface ApproximateEngine {
  readonly name: 'trawl' | ApproximateBaseline;
  readonly version: string;
  /** The settings at which it is measured; null is the only one of an exact engine. */
  readonly efforts: readonly (number | null)[];
  readonly buildSeconds: number | null;
  /** Searches for the first `count` queries one by one. */
  lone(count: number, k: number, effort: number | null): Promise<{ ms: readonly number[]; rows: readonly number[] }>;
  /** Searches for the first `count` queries in one call. */
  batch(count: number, k: number, effort: number | null): Promise<number>;
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}

export interface GraphOptions {
  readonly python: string;
  readonly threads: number;
  readonly vectors: string;
  readonly queries: string;
  readonly efforts: readonly number[];
}

/** Edges of a node, and candidates of a step when the graph is made: common choices of both libraries' users. */
const GRAPH = { neighbours: 32, effort: 200 } as const;

/** @throws EngineUnavailable if Python or a package is missing, or the memory does not suffice. */
export async function openApproximate(name: ApproximateBaseline, options: GraphOptions): Promise<ApproximateEngine> {
  return name === 'faiss' ? exactEngine(await openBaseline('faiss', options)) : openGraph(name, options);
}

/** An exact engine of `trawl bench flat`. */
export function exactEngine(engine: FlatEngine): ApproximateEngine {
  return {
    name: engine.name as 'trawl' | 'faiss',
    version: engine.version,
    efforts: [null],
    buildSeconds: null,
    async lone(count, k) {
      const ms: number[] = [];
      const rows: number[] = [];
      for (let query = 0; query < count; query++) {
        const answer = await engine.search(query, 1, k);
        ms.push(answer.ms);
        rows.push(...Array.from(answer.rows));
      }
      return { ms, rows };
    },
    batch: async (count, k) => (await engine.search(0, count, k)).ms,
    residentBytes: () => engine.residentBytes(),
    close: () => engine.close(),
  };
}

interface Reply {
  readonly version: string;
  readonly buildSeconds: number;
  readonly times: readonly number[];
  readonly ms: number;
  readonly rows: readonly number[];
  readonly residentBytes: number;
}

async function openGraph(
  name: Exclude<ApproximateBaseline, 'faiss'>,
  { efforts, vectors, queries, ...process }: GraphOptions,
): Promise<ApproximateEngine> {
  const script = openBaselineScript<Reply>(`approximate_${name.replace('-', '_')}`, name, process);
  try {
    const { version, buildSeconds } = await script.ask({ do: 'load', vectors, queries, ...GRAPH });
    return {
      name,
      version,
      efforts,
      buildSeconds,
      async lone(count, k, effort) {
        const { times } = await script.ask({ do: 'lone', count, k, effort: effort! });
        return { ms: times, rows: (await script.ask({ do: 'answer' })).rows };
      },
      batch: async (count, k, effort) => (await script.ask({ do: 'batch', count, k, effort: effort! })).ms,
      residentBytes: async () => (await script.ask({ do: 'memory' })).residentBytes,
      close: () => script.close(),
    };
  } catch (error) {
    await script.close();
    throw error;
  }
}
