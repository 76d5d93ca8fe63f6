import { openBaselineScript } from '../baselines.ts';
import type { ScriptProcess } from '../script-process.ts';
import type { BaselineName, FlatEngine, TimedAnswer } from './flat-engine.ts';

export interface BaselineOptions {
  readonly python: string;
  readonly threads: number;
  /** The rows, a FAISS file. */
  readonly vectors: string;
  /** The queries, a .npy file. */
  readonly queries: string;
}

/** A reply of the script; each request has its own fields of these. */
interface Reply {
  readonly version: string;
  readonly ms: number;
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  readonly residentBytes: number;
}

/**
 * Starts a baseline in its own Python process and loads the rows.
 *
 * @throws EngineUnavailable if Python or a package is missing, or the memory does not suffice.
 */
export async function openBaseline(name: BaselineName, options: BaselineOptions): Promise<FlatEngine> {
  const script = openBaselineScript<Reply>(`flat_${name}`, name, options);
  try {
    const { version } = await script.ask({ do: 'load', vectors: options.vectors, queries: options.queries });
    return new BaselineEngine(name, version, script);
  } catch (error) {
    await script.close();
    throw error;
  }
}

class BaselineEngine implements FlatEngine {
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
