import { fileURLToPath } from 'node:url';
import type { Precision } from '../src/manifest/model-identity.ts';
import { openBaselineScript } from './baselines.ts';
import { ScriptProcess } from './script-process.ts';

/** Encoders that Trawl is timed beside; each has a script bench/baselines/embed_NAME.py, with _ for -. */
export const EMBED_BASELINES = ['sentence-transformers'] as const;
export type EmbedBaseline = (typeof EMBED_BASELINES)[number];

export interface TimedEncoding {
  /** The encoding alone, tokenising included. */
  readonly ms: number;
  /** Sums over the texts, special tokens included, padding not. */
  readonly tokens: number;
  readonly squaredTokens: number;
}

/** An encoder in a process of its own, with its texts loaded. One call at a time. */
export interface EmbedEngine {
  readonly name: 'trawl' | EmbedBaseline;
  readonly precision: Precision;
  readonly version: string;
  /** Passages [first, first + count) in one call. */
  encode(first: number, count: number): Promise<TimedEncoding>;
  /** Milliseconds of each query of [first, first + count), one a call. */
  query(first: number, count: number): Promise<readonly number[]>;
  /** Vectors of the first passages, row-major. */
  vectors(count: number): Promise<readonly number[]>;
  /** Operations of a float32 matrix product a second, 10^9; undefined where the engine has none to offer. */
  matmul(): Promise<number | undefined>;
  /** Most memory since the last call, less what was in use before the model was loaded. */
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}

/** What every engine loads. */
export interface EmbedLoad {
  /** JSON file {"passages": [...], "queries": [...]}. */
  readonly texts: string;
  readonly threads: number;
}

export interface BaselineLoad extends EmbedLoad {
  readonly python: string;
  /** A sentence-transformers folder. */
  readonly model: string;
  readonly queryPrefix: string;
  readonly passagePrefix: string;
  readonly maxQueryTokens: number;
  readonly maxPassageTokens: number;
  /** Texts in a batch. */
  readonly batch: number;
}

interface Reply extends TimedEncoding {
  readonly version: string;
  readonly times: readonly number[];
  readonly values: readonly number[];
  readonly gflopPerS: number;
  readonly residentBytes: number;
}

/** @throws EngineUnavailable when the model cannot be opened, with why. */
export async function openTrawlEncoder(
  { texts, threads }: EmbedLoad,
  model: string,
  precision: Precision,
): Promise<EmbedEngine> {
  const program = fileURLToPath(new URL('./embed-trawl.js', import.meta.url));
  const script = new ScriptProcess<Reply>('trawl', process.execPath, [program, String(threads)]);
  return load(script, 'trawl', precision, { model, texts, precision });
}

/** @throws EngineUnavailable when Python, a package or the model is missing. */
export async function openBaselineEncoder(name: EmbedBaseline, options: BaselineLoad): Promise<EmbedEngine> {
  const { python, threads, ...request } = options;
  const script = openBaselineScript<Reply>(`embed_${name.replaceAll('-', '_')}`, name, { python, threads });
  return load(script, name, 'float32', request);
}

async function load(
  script: ScriptProcess<Reply>,
  name: EmbedEngine['name'],
  precision: Precision,
  request: Readonly<Record<string, string | number>>,
): Promise<EmbedEngine> {
  try {
    const { version } = await script.ask({ do: 'load', ...request });
    return new ScriptEncoder(script, name, precision, version);
  } catch (error) {
    await script.close();
    throw error;
  }
}

class ScriptEncoder implements EmbedEngine {
  readonly name: EmbedEngine['name'];
  readonly precision: Precision;
  readonly version: string;
  readonly #script: ScriptProcess<Reply>;

  constructor(script: ScriptProcess<Reply>, name: EmbedEngine['name'], precision: Precision, version: string) {
    this.#script = script;
    this.name = name;
    this.precision = precision;
    this.version = version;
  }

  async encode(first: number, count: number): Promise<TimedEncoding> {
    return this.#script.ask({ do: 'encode', first, count });
  }

  async query(first: number, count: number): Promise<readonly number[]> {
    return (await this.#script.ask({ do: 'query', first, count })).times;
  }

  async vectors(count: number): Promise<readonly number[]> {
    return (await this.#script.ask({ do: 'vectors', count })).values;
  }

  async matmul(): Promise<number | undefined> {
    return this.name === 'trawl' ? undefined : (await this.#script.ask({ do: 'matmul' })).gflopPerS;
  }

  async residentBytes(): Promise<number> {
    return (await this.#script.ask({ do: 'memory' })).residentBytes;
  }

  close(): Promise<void> {
    return this.#script.close();
  }
}
