import type { Logger } from 'pino';
import { asTrawlError } from '../src/errors.ts';
import type { RetrieverHolder } from '../src/http/retriever-holder.ts';
import type { ServerMetrics } from '../src/http/server-metrics.ts';

export interface Reloaded {
  readonly holder: RetrieverHolder;
  readonly metrics: ServerMetrics;
  readonly log: Logger | undefined;
  /** Keys and certificates; throws what is wrong with them. */
  readonly files: readonly (() => void)[];
  note(text: string): void;
}

/** Keys, certificates and every index anew. What cannot be read or opened goes on as it was. */
export async function reloadServer({ holder, metrics, log, files, note }: Reloaded): Promise<void> {
  if (holder.state !== 'ready') return;
  for (const read of files) {
    try {
      read();
    } catch (error) {
      const { code, message } = asTrawlError(error);
      log?.error({ code, reason: message }, 'reload failed');
      note(`keys and certificates go on as they were: ${message} [${code}]`);
    }
  }
  for (const slot of holder.slots) {
    // A stop that came meanwhile leaves the rest as it is.
    if (holder.state !== 'ready') return;
    try {
      const { generation, rows } = (await slot.load()).info;
      metrics.reloaded(slot.name, 'done');
      log?.info({ index: slot.name, generation, rows }, 'index reloaded');
      note(`${slot.name}: opened anew (generation ${generation})`);
    } catch (error) {
      metrics.reloaded(slot.name, 'failed');
      const { code, message } = asTrawlError(error);
      log?.error({ index: slot.name, code, reason: message }, 'reload failed');
      note(`${slot.name}: could not be opened anew, the old one goes on: ${message} [${code}]`);
    }
  }
}

/**
 * SIGHUP, by which servers are told to look at their files again. It is listened to from the making on, since by itself it
 * ends a process. What comes during the start is done at its end, and what comes during a reload once more after it.
 */
export class HangUps {
  #asked = false;
  #running = false;
  #reload: (() => Promise<void>) | undefined;
  readonly #onSignal = (): void => {
    this.#asked = true;
    void this.#run();
  };

  constructor() {
    process.on('SIGHUP', this.#onSignal);
  }

  /** From here on a signal reloads. */
  answerBy(reload: () => Promise<void>): void {
    this.#reload = reload;
    void this.#run();
  }

  close(): void {
    process.off('SIGHUP', this.#onSignal);
  }

  async #run(): Promise<void> {
    if (this.#running || this.#reload === undefined) return;
    this.#running = true;
    while (this.#asked) {
      this.#asked = false;
      await this.#reload();
    }
    this.#running = false;
  }
}
