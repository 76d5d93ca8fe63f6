import { join } from 'node:path';
import { DEFAULT_BM25 } from '../../src/engine/lexical/bm25.ts';
import { openBaselineScript } from '../baselines.ts';
import { openLucene } from '../lucene.ts';
import type { ScriptProcess } from '../script-process.ts';
import type { Bm25Baseline, BuildFigures, CorpusFiles, LexicalEngine, QueryFiles } from './lexical-engine.ts';
import { type Hits, readHits } from './text-file.ts';

export interface BaselineOptions {
  /** The folder in which Lucene is installed. */
  readonly cache: string;
  readonly python: string;
  readonly threads: number;
  /** Folder of the baseline's index and answers. */
  readonly folder: string;
}

/** A reply of a baseline (bench/baselines/bm25_protocol.py); each request has its own fields of these. */
interface Reply {
  readonly version: string;
  readonly ms: number;
  readonly seconds: number;
  readonly bytes: number;
  readonly times: readonly number[];
  readonly queries: number;
}

/**
 * Starts a baseline in its own process, builds its index and opens it.
 *
 * @throws EngineUnavailable if a program or a package is missing, or the memory does not suffice.
 */
export async function openBaseline(
  name: Bm25Baseline,
  corpus: CorpusFiles,
  options: BaselineOptions,
): Promise<LexicalEngine> {
  const isLucene = name === 'lucene';
  const script = isLucene ? openLucene<Reply>(options.cache) : openBaselineScript<Reply>(`bm25_${name}`, name, options);
  try {
    const [analyser, texts] = ['english', isLucene ? corpus.texts : corpus.terms];
    const folder = join(options.folder, name);
    const { k1, b } = DEFAULT_BM25;
    const { seconds, bytes } = await script.ask({ do: 'build', analyser, texts, folder });
    const analysisMs = isLucene
      ? (await script.ask({ do: 'terms', analyser, texts, out: join(options.folder, 'terms') })).ms
      : null;
    const { version, ms } = await script.ask({ do: 'load', analyser, folder, k1, b });
    const build = { seconds, bytes, analysisMs, openMs: ms, postings: null };
    return new BaselineEngine(name, version, build, script, join(options.folder, `${name}-answer`));
  } catch (error) {
    await script.close();
    throw error;
  }
}

class BaselineEngine implements LexicalEngine {
  readonly name: Bm25Baseline;
  readonly version: string;
  readonly build: BuildFigures;
  readonly #script: ScriptProcess<Reply>;
  readonly #answerFile: string;

  constructor(name: Bm25Baseline, version: string, build: BuildFigures, script: ScriptProcess<Reply>, answer: string) {
    this.name = name;
    this.version = version;
    this.build = build;
    this.#script = script;
    this.#answerFile = answer;
  }

  async useQueries(queries: QueryFiles): Promise<number | null> {
    const isLucene = this.name === 'lucene';
    const { ms } = await this.#script.ask({ do: 'queries', texts: isLucene ? queries.texts : queries.terms });
    return isLucene ? ms : null;
  }

  async lone(k: number, _threads: number, limitMs: number): Promise<readonly number[]> {
    return (await this.#script.ask({ do: 'lone', k, limitMs })).times;
  }

  async batch(k: number, threads: number, limitMs: number): Promise<{ queries: number; ms: number }> {
    const { queries, ms } = await this.#script.ask({ do: 'batch', k, threads, limitMs });
    return { queries, ms };
  }

  async answer(): Promise<readonly Hits[]> {
    await this.#script.ask({ do: 'answer', out: this.#answerFile });
    return readHits(this.#answerFile);
  }

  processBytes(): number | null {
    return this.#script.processBytes();
  }

  close(): Promise<void> {
    return this.#script.close();
  }
}
