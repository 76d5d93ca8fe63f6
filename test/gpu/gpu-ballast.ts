import { InferenceSession, Tensor } from 'onnxruntime-node';
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
  let parts = 0;
  for (; parts < MOST_PARTS; parts++) {
    const free = freeMemory(device);
    if (free === undefined) throw new Error('nvidia-smi does not say how much memory is free');
    const wanted = free - leave;
    if (wanted < SMALLEST) break;
    await hold(path, device, 2 ** Math.floor(Math.log2(wanted)));
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
