import { InferenceSession, Tensor } from 'onnxruntime-node';
import { isOutOfMemory } from '../../src/encoder/inference/token-batch.ts';
import { freeMemory } from './gpu-machine.ts';

/** What a process takes of a device's memory. It keeps it until it is killed. */
export interface BallastRequest {
  /** The graph of `ballast-graph.ts`. */
  readonly path: string;
  /** Null: the CPU, of which it takes little. */
  readonly device: number | null;
  /** Free bytes to leave. */
  readonly leave: number;
}

/** Less than this is not taken. */
const SMALLEST = 64 * 2 ** 20;
/** More at once is refused: CUDA's kernels count the values of a tensor in 32 bits. */
const LARGEST = 2 ** 32;
const MOST_PARTS = 100;

// Ends with the parent.
process.on('disconnect', () => process.exit());
process.once('message', (request: BallastRequest) => {
  void take(request).then(
    (parts) => process.send!({ parts }),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});

/** Takes powers of two, each by a session of its own: onnxruntime's allocator rounds up to one, and keeps what it has. */
async function take({ path, device, leave }: BallastRequest): Promise<number> {
  if (device === null) return hold(path, device, 2 ** 20);
  let [parts, largest] = [0, LARGEST];
  while (parts < MOST_PARTS) {
    const free = freeMemory(device);
    if (free === undefined) throw new Error('nvidia-smi does not say how much memory is free');
    const size = Math.min(largest, 2 ** Math.floor(Math.log2(Math.max(1, free - leave))));
    if (size < SMALLEST) break;
    try {
      parts += await hold(path, device, size);
    } catch (error) {
      // The graph may need more than its tensor.
      if (!isOutOfMemory(String(error))) throw error;
      largest = size / 2;
    }
  }
  return parts;
}

async function hold(path: string, device: number | null, bytes: number): Promise<number> {
  const session = await InferenceSession.create(path, {
    executionProviders: device === null ? ['cpu'] : [{ name: 'cuda', deviceId: device }],
    logSeverityLevel: 4,
  });
  await session.run({ values: new Tensor('int64', BigInt64Array.of(BigInt(bytes / 4)), [1]) });
  return 1;
}
