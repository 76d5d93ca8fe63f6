import { setFlagsFromString } from 'node:v8';

/** Long enough for the compilations that run already: they take milliseconds. */
const PAUSE_MS = 50;

/**
 * Ends the process with `code` in place of `process.exit`, which can wait forever: if a V8 thread that compiles in the background
 * needs a garbage collection, Node.js 24 joins it on the main thread, and the main thread is the one that would collect
 * (`WorkerThreadsTaskRunner::Shutdown` and `CollectionBarrier::AwaitCollectionBackground`). So no further compilation starts,
 * and the running ones get the time to end. The caller continues meanwhile.
 */
export function exitProcess(code: number): void {
  setFlagsFromString('--no-concurrent-recompilation');
  setFlagsFromString('--no-concurrent-sparkplug');
  setTimeout(() => process.exit(code), PAUSE_MS);
}
