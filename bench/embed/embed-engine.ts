import { fileURLToPath } from 'node:url';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { openBaselineScript } from '../baselines.ts';
import { ScriptProcess } from '../script-process.ts';

/** The encoders that Trawl is compared with. bench/baselines/embed_NAME.py, with _ for -, runs each. */
export const EMBED_BASELINES = ['sentence-transformers'] as const;
export type EmbedBaseline = (typeof EMBED_BASELINES)[number];

export interface TimedEncoding {
  /** Time of the encoding, including tokenisation. */
  readonly ms: number;
  /** Sum over the texts, including special tokens but not padding. */
  readonly tokens: number;
  /** Sum of the squares of the texts' tokens. */
  readonly squaredTokens: number;
}

/** Replaces what the engine was opened with; only for a baseline. */
interface EncodeLimits {
  /** Texts in a batch. */
  readonly batch: number;
  readonly maxPassageTokens: number;
}

/** An encoder in a process of its own, with its texts loaded. One call at a time. */
export interface EmbedEngine {
  readonly name: 'trawl' | EmbedBaseline;
  readonly precision: Precision;
  readonly version: string;
  /** Encodes passages [first, first + count) in one call. */
  encode(first: number, count: number, limits?: EncodeLimits): Promise<TimedEncoding>;
  /** Encodes queries [first, first + count) one by one; the milliseconds of each. */
  query(first: number, count: number): Promise<readonly number[]>;
  /** The vectors of the first `count` passages, row-major. */
  vectors(count: number): Promise<readonly number[]>;
  /** Speed of a float32 matrix product, in 10^9 operations a second; undefined for Trawl. */
  matmul(): Promise<number | undefined>;
  /** Peak memory since the last call, less the memory used before the model was loaded. In bytes. */
  residentBytes(): Promise<number>;
  close(): Promise<void>;
}

/** The texts and threads of every engine. */
export interface EmbedLoad {
  /** A JSON file {"passages": [...], "queries": [...]}. */
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
  /** torch's device and type of the weights. Default: the CPU, float32. */
  readonly device?: string;
  readonly dtype?: 'float32' | 'float16';
}

interface Reply extends TimedEncoding {
  readonly version: string;
  readonly times: readonly number[];
  readonly values: readonly number[];
  readonly gflopPerS: number;
  readonly residentBytes: number;
}

/** @throws EngineUnavailable if the model cannot be opened. */
export async function openTrawlEncoder(
  { texts, threads }: EmbedLoad,
  model: string,
  precision: Precision,
): Promise<EmbedEngine> {
  const program = fileURLToPath(new URL('./trawl-process.js', import.meta.url));
  const script = new ScriptProcess<Reply>('trawl', process.execPath, [program, String(threads)]);
  return load(script, 'trawl', precision, { model, texts, precision });
}

/** @throws EngineUnavailable if Python, a package or the model is missing. */
export async function openBaselineEncoder(name: EmbedBaseline, options: BaselineLoad): Promise<EmbedEngine> {
  const { python, threads, ...request } = options;
  const script = openBaselineScript<Reply>(`embed_${name.replaceAll('-', '_')}`, name, { python, threads });
  return load(script, name, options.dtype ?? 'float32', request);
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

  async encode(first: number, count: number, limits?: EncodeLimits): Promise<TimedEncoding> {
    return this.#script.ask({ do: 'encode', first, count, ...limits });
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
