const STOPPING = 0;
const RUNNING = 1;
/** Longest wait for native code when the process exits without closing its encoders. */
const EXIT_WAIT_MS = 5_000;

/**
 * Delays the exit of the process while onnxruntime runs on a worker thread: ending the thread during a run aborts the process (in 4
 * of 4 trials). The worker calls `enter` and `leave` around native work, the main thread `stopAndWait` when the process exits. Each
 * side writes its own cell before it reads the other's, so either the worker sees the stop or the main thread sees the run.
 */
export class RunGate {
  readonly shared: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared;
    this.#cells = new Int32Array(shared);
  }

  /** Called by the worker. Returns false if the process is exiting; the worker must not run native work then. */
  enter(): boolean {
    Atomics.store(this.#cells, RUNNING, 1);
    if (Atomics.load(this.#cells, STOPPING) === 0) return true;
    this.leave();
    return false;
  }

  leave(): void {
    Atomics.store(this.#cells, RUNNING, 0);
    Atomics.notify(this.#cells, RUNNING);
  }

  /** Called by the main thread. Blocks until the worker runs no native work, for at most `timeoutMs`. */
  stopAndWait(timeoutMs: number): void {
    Atomics.store(this.#cells, STOPPING, 1);
    Atomics.wait(this.#cells, RUNNING, 1, timeoutMs);
  }
}

/** Gates of all encoder threads of this process, which share one exit listener. */
const openGates = new Set<RunGate>();

/** Makes the exit of the process wait for the gate's thread. Call `releaseGate` when the thread has ended. */
export function waitAtExit(gate: RunGate): void {
  if (openGates.size === 0) process.on('exit', stopAll);
  openGates.add(gate);
}

export function releaseGate(gate: RunGate): void {
  openGates.delete(gate);
  if (openGates.size === 0) process.removeListener('exit', stopAll);
}

function stopAll(): void {
  // Stops all before it waits for any, so that they share one deadline.
  for (const gate of openGates) gate.stopAndWait(0);
  const deadline = performance.now() + EXIT_WAIT_MS;
  for (const gate of openGates) gate.stopAndWait(Math.max(0, deadline - performance.now()));
}
