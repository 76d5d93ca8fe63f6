import { openBaselineScript } from './baselines.ts';
import type { BaselineName, BenchEngine, TimedAnswer } from './bench-engine.ts';
import type { ScriptProcess } from './script-process.ts';

export interface BaselineOptions {
  readonly python: string;
  readonly threads: number;
  /** FAISS file of the rows. */
  readonly vectors: string;
  /** .npy file of the queries. */
  readonly queries: string;
}

/** What a script answers; which fields depends on the request. */
interface Reply {
  readonly version: string;
  readonly ms: number;
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  readonly residentBytes: number;
}

/**
 * A baseline in its own Python process, with its rows loaded.
 *
 * @throws EngineUnavailable when Python, a package or memory is missing.
 */
export async function openBaseline(name: BaselineName, options: BaselineOptions): Promise<BenchEngine> {
  const script = openBaselineScript<Reply>(`flat_${name}`, name, options);
  try {
    const { version } = await script.ask({ do: 'load', vectors: options.vectors, queries: options.queries });
    return new BaselineEngine(name, version, script);
  } catch (error) {
    await script.close();
    throw error;
  }
}

class BaselineEngine implements BenchEngine {
  readonly name: BaselineName;
  readonly version: string;
  readonly #script: ScriptProcess<Reply>;

  constructor(name: BaselineName, version: string, script: ScriptProcess<Reply>) {
    this.name = name;
    this.version = version;
    this.#script = script;
  }

  async search(first: number, count: number, k: number): Promise<TimedAnswer> {
    const { ms } = await this.#script.ask({ do: 'search', first, count, k });
    const { rows, scores } = await this.#script.ask({ do: 'answer' });
    return { ms, rows, scores };
  }

  async residentBytes(): Promise<number> {
    return (await this.#script.ask({ do: 'memory' })).residentBytes;
  }

  close(): Promise<void> {
    return this.#script.close();
  }
}
