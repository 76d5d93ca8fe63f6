const STOPPING = 0;
const RUNNING = 1;

/**
 * Keeps a thread from being ended while onnxruntime runs on it, which aborts the whole process (measured: 4 of 4).
 * The worker passes `enter` and `leave` around native work; the main thread, about to end without having closed the
 * pool (`process.exit`, an uncaught error), calls `stopAndWait`. Each side writes its own cell before it reads the
 * other's, so a run cannot begin behind the main thread's back.
 */
export class RunGate {
  readonly shared: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared;
    this.#cells = new Int32Array(shared);
  }

  /** Worker: false means that the process is ending and nothing may be run any more. */
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

  /** Main thread: blocks it until the worker is between runs, for at most `timeoutMs`. */
  stopAndWait(timeoutMs: number): void {
    Atomics.store(this.#cells, STOPPING, 1);
    Atomics.wait(this.#cells, RUNNING, 1, timeoutMs);
  }
}
