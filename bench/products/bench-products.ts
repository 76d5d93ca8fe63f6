import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { writeOnnx } from '../../indexer/model-import/onnx-writer.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { disableTelemetry } from '../../src/base/options/environment.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import { onnxruntimeFacts } from '../../src/encoder/inference/onnx-session.ts';
import { loadNow, type MachineFacts, machineFacts } from '../environment.ts';
import { type ChainShape, chainOperations, productChain } from './product-chain.ts';
import { kindOf, type ProductKind } from './product-kinds.ts';
import type { ProductsReply, ProductsRequest, ProductsSetup } from './products-worker.ts';

export interface BenchProductsOptions extends ChainShape {
  readonly kinds: readonly ProductKind[];
  readonly tokenCounts: readonly number[];
  readonly threads: number;
  readonly runs: number;
  readonly seed: number;
  /** Folder of temporary files. */
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

/**
 * `alone`: one thread. `apart`: each thread has a session of its own, as Trawl's encoder threads. `together`: one session divides
 * each product among the threads.
 */
type ThreadUse = 'alone' | 'apart' | 'together';

export interface ProductsRecord {
  readonly case: 'products';
  readonly kind: ProductKind;
  readonly hidden: number;
  readonly layers: number;
  readonly tokens: number;
  readonly threads: number;
  readonly use: ThreadUse;
  readonly runs: number;
  /** Time of all products for the tokens of one thread, in milliseconds by the clock: median over the runs. */
  readonly medianMs: number;
  /** The same in processor time of all threads, divided by their number if they work apart. Waiting threads use some, too. */
  readonly processorMs: number;
  /** 10^9 multiplications and additions a second of processor time, of one thread; null if the threads work together. */
  readonly gflopPerS: number | null;
  /** `processorMs` of float32 in the same run divided by this; by the clock if the threads work together. Null without float32. */
  readonly ratioToFloat32: number | null;
  /** Only for `together`: whether the result has the bits of one thread's. */
  readonly sameBits: boolean | null;
}

export interface BenchProductsResult {
  readonly environment: MachineFacts;
  readonly records: readonly ProductsRecord[];
  readonly skipped: readonly { readonly kind: ProductKind; readonly reason: string }[];
}

/** Work of a measurement: long enough for the clock of processor time. */
const OPERATIONS_A_RUN = 3e9;

/** Times the matrix products of an encoder with each of onnxruntime's operators, all in turns. */
export async function benchProducts(options: BenchProductsOptions): Promise<BenchProductsResult> {
  const loadBefore = loadNow();
  disableTelemetry();
  const skipped: { kind: ProductKind; reason: string }[] = [];
  const sessions: Sessions[] = [];
  try {
    for (const kind of options.kinds) {
      throwIfCancelled(options.signal);
      try {
        sessions.push(await openSessions(kind, options));
      } catch (error) {
        const reason = (error as Error).message;
        skipped.push({ kind, reason });
        options.note(`Skipped ${kind}: ${reason}`);
      }
    }
    const records: ProductsRecord[] = [];
    for (const tokens of options.tokenCounts) {
      for (const use of options.threads === 1 ? (['alone'] as const) : (['alone', 'apart', 'together'] as const)) {
        records.push(...(await measure(sessions, use, tokens, options)));
      }
    }
    const engines = [{ version: `onnxruntime ${onnxruntimeFacts().version}` }];
    return { environment: machineFacts({ engines, loadBefore }), records, skipped };
  } finally {
    await Promise.all(sessions.flatMap(({ apart, together }) => [...apart, ...together].map((one) => one.close())));
  }
}

interface Sessions {
  readonly kind: ProductKind;
  readonly apart: readonly ProductThread[];
  readonly together: readonly ProductThread[];
}

async function openSessions(kind: ProductKind, options: BenchProductsOptions): Promise<Sessions> {
  const { hidden, threads, seed, scratch, signal } = options;
  const path = join(scratch, `${kind.replaceAll(/[^a-z0-9]+/gi, '-')}.onnx`);
  await writeOnnx(path, productChain(options, kind, seed), { signal });
  const config = kindOf(kind).config ?? {};
  const opened: ProductThread[] = [];
  try {
    for (let i = 0; i < threads; i++) opened.push(await ProductThread.open({ path, hidden, threads: 1, config }));
    const together = threads === 1 ? [] : [await ProductThread.open({ path, hidden, threads, config })];
    return { kind, apart: opened, together };
  } catch (error) {
    await Promise.all(opened.map((one) => one.close()));
    throw error;
  }
}

async function measure(
  sessions: readonly Sessions[],
  use: ThreadUse,
  tokens: number,
  { hidden, layers, runs, threads, signal }: BenchProductsOptions,
): Promise<ProductsRecord[]> {
  const operations = chainOperations({ hidden, layers }, tokens);
  const repeats = Math.max(1, Math.round(OPERATIONS_A_RUN / operations));
  const used = sessions.map(({ kind, apart, together }) => ({
    kind,
    running: use === 'together' ? together : use === 'apart' ? apart : apart.slice(0, 1),
    one: apart[0]!,
    clock: [] as number[],
    processor: [] as number[],
  }));
  // The first run is not counted.
  for (let run = -1; run < runs; run++) {
    for (const { running, clock, processor } of used) {
      throwIfCancelled(signal);
      const before = process.cpuUsage();
      const start = performance.now();
      await Promise.all(running.map((thread) => thread.run({ tokens, repeats })));
      const elapsed = performance.now() - start;
      const { user, system } = process.cpuUsage(before);
      if (run < 0) continue;
      clock.push(elapsed / repeats);
      processor.push((user + system) / 1000 / repeats / running.length);
    }
  }
  const measured = [];
  for (const { kind, running, one, clock, processor } of used) {
    const times = { clock: median(sortedSamples(clock)), processor: median(sortedSamples(processor)) };
    const sameBits = use === 'together' ? await haveSameBits(one, running[0]!, tokens) : null;
    measured.push({ kind, sameBits, ...times });
  }
  const float32 = measured.find(({ kind }) => kind === 'float32');
  return measured.map(({ kind, sameBits, clock, processor }) => {
    const ratio = use === 'together' ? (float32?.clock ?? 0) / clock : (float32?.processor ?? 0) / processor;
    return {
      case: 'products',
      kind,
      hidden,
      layers,
      tokens,
      threads: use === 'alone' ? 1 : threads,
      use,
      runs,
      medianMs: clock,
      processorMs: processor,
      gflopPerS: use === 'together' ? null : operations / processor / 1e6,
      ratioToFloat32: float32 === undefined ? null : ratio,
      sameBits,
    };
  });
}

async function haveSameBits(one: ProductThread, other: ProductThread, tokens: number): Promise<boolean> {
  const [a, b] = [await one.run({ tokens, repeats: 1 }), await other.run({ tokens, repeats: 1 })];
  return Buffer.from(a.buffer).equals(Buffer.from(b.buffer));
}

/** A worker thread with a session. One call at a time. */
class ProductThread {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async open(setup: ProductsSetup): Promise<ProductThread> {
    const worker = new Worker(new URL('./products-worker.js', import.meta.url), { workerData: setup, execArgv: [] });
    const thread = new ProductThread(worker);
    try {
      await thread.#next();
      return thread;
    } catch (error) {
      await thread.close();
      throw error;
    }
  }

  async run(request: ProductsRequest): Promise<Float32Array> {
    const next = this.#next();
    this.#worker.postMessage(request);
    return (await next)!;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  async #next(): Promise<Float32Array | undefined> {
    const message = await new Promise<ProductsReply | { readonly ready: true }>((resolve, reject) => {
      this.#worker.once('message', resolve);
      this.#worker.once('error', reject);
    });
    this.#worker.removeAllListeners('error');
    if ('failed' in message) throw new Error(message.failed);
    return 'output' in message ? message.output : undefined;
  }
}
