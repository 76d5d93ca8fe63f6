import { setFlagsFromString } from 'node:v8';

/** Time for running compilations to end; they take milliseconds. */
const PAUSE_MS = 50;

/**
 * Ends the process with `code`, after a pause in which the caller continues. `process.exit` alone can wait forever in Node.js 24: a V8
 * thread that compiles in the background waits for the main thread to collect garbage, while the main thread waits for that thread
 * (`WorkerThreadsTaskRunner::Shutdown`, `CollectionBarrier::AwaitCollectionBackground`). So no further compilation starts here, and
 * running ones get the time to end.
 */
export function exitProcess(code: number): void {
  setFlagsFromString('--no-concurrent-recompilation');
  setFlagsFromString('--no-concurrent-sparkplug');
  setTimeout(() => process.exit(code), PAUSE_MS);
}
