import { parentPort, workerData } from 'node:worker_threads';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** A thread with one session, which runs the chain of products. */
export interface ProductsSetup {
  readonly path: string;
  readonly hidden: number;
  /** Threads of the session. */
  readonly threads: number;
  readonly config: Readonly<Record<string, string>>;
}

export interface ProductsRequest {
  readonly tokens: number;
  readonly repeats: number;
}

export type ProductsReply = { readonly output: Float32Array } | { readonly failed: string };

const { path, hidden, threads, config } = workerData as ProductsSetup;
const port = parentPort!;
const reply = (message: ProductsReply | { readonly ready: true }): void => port.postMessage(message);

try {
  const session = await InferenceSession.create(path, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    // Dotted names are nested objects.
    extra: nested(config),
  });
  port.on('message', async ({ tokens, repeats }: ProductsRequest) => {
    try {
      const values = Float32Array.from({ length: tokens * hidden }, (_, i) => Math.sin(i * 1.7) * Math.SQRT2);
      let output: Tensor | undefined;
      for (let i = 0; i < repeats; i++) {
        output = (await session.run({ input: new Tensor('float32', values, [tokens, hidden]) })).output;
      }
      reply({ output: Float32Array.from(output!.data as Float32Array) });
    } catch (error) {
      reply({ failed: String(error) });
    }
  });
  reply({ ready: true });
} catch (error) {
  reply({ failed: (error as Error).message });
}

function nested(flat: Readonly<Record<string, string>>): Record<string, Record<string, string>> {
  const result: Record<string, Record<string, string>> = {};
  for (const [key, value] of Object.entries(flat)) {
    const dot = key.indexOf('.');
    result[key.slice(0, dot)] = { ...result[key.slice(0, dot)], [key.slice(dot + 1)]: value };
  }
  return result;
}
