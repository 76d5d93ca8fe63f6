import { TrawlError } from './errors.ts';

/** Tracks the running calls of a resource. `close` waits for them and refuses later calls. */
export class RunningCalls {
  readonly #refusal: string;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** @param refusal error message of calls after `close`. */
  constructor(refusal: string) {
    this.#refusal = refusal;
  }

  /** @throws TrawlError NOT_READY after `close`; any error of `work`. */
  run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(new TrawlError('NOT_READY', this.#refusal));
    const running = work();
    const settled: Promise<unknown> = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    return running;
  }

  /** Waits for the running calls, then runs `end`. A second call waits for the first. */
  close(end: () => void | Promise<void>): Promise<void> {
    this.#closing ??= Promise.all(this.#running).then(end);
    return this.#closing;
  }
}
