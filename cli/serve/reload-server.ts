import { asTrawlError } from '../../src/base/errors.ts';
import type { TrawlServer } from './make-server.ts';

/** Reloads the files and every index. If one cannot be read or opened, the old one stays in use. */
export async function reloadServer(
  { holder, metrics, log, files }: TrawlServer,
  note: (text: string) => void,
): Promise<void> {
  if (holder.state !== 'ready') return;
  for (const { option, reload } of files) {
    try {
      await reload();
    } catch (error) {
      const { code, message } = asTrawlError(error);
      log?.logger.error({ option, code, reason: message }, 'reload failed');
      note(`${option}: reload failed, the old content stays in use: ${message} [${code}]`);
    }
  }
  for (const slot of holder.slots) {
    // A stopping server does not reload the remaining indexes.
    if (holder.state !== 'ready') return;
    try {
      const { generation, rows } = (await slot.load()).info;
      metrics.reloaded(slot.name, 'done');
      log?.logger.info({ index: slot.name, generation, rows }, 'index reloaded');
      note(`${slot.name}: reloaded (generation ${generation})`);
    } catch (error) {
      metrics.reloaded(slot.name, 'failed');
      const { code, message } = asTrawlError(error);
      log?.logger.error({ index: slot.name, code, reason: message }, 'reload failed');
      note(`${slot.name}: reload failed, the old index stays: ${message} [${code}]`);
    }
  }
}

/**
 * Handles SIGHUP, which requests a reload. The constructor installs the handler, because without one the signal would end the
 * process. A signal during the start causes a reload after the start; a signal during a reload causes another one after it.
 */
export class ReloadSignal {
  #requested = false;
  #running = false;
  #reload: (() => Promise<void>) | undefined;
  readonly #onSignal = (): void => {
    this.#requested = true;
    void this.#run();
  };

  constructor() {
    process.on('SIGHUP', this.#onSignal);
  }

  /** Calls `reload` for each signal from now on, one call at a time. */
  handleWith(reload: () => Promise<void>): void {
    this.#reload = reload;
    void this.#run();
  }

  close(): void {
    process.off('SIGHUP', this.#onSignal);
  }

  async #run(): Promise<void> {
    if (this.#running || this.#reload === undefined) return;
    this.#running = true;
    while (this.#requested) {
      this.#requested = false;
      await this.#reload();
    }
    this.#running = false;
  }
}
