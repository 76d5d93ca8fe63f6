import { asTrawlError, TrawlError } from '../../base/errors.ts';
import type { Probe } from '../identity/endpoint-record.ts';
import { areSameProbes, compareProbes, describeSimilarities } from '../identity/same-model.ts';
import type { Freshness } from './endpoint-client.ts';

interface WatchOptions {
  /** Milliseconds between two checks; 0: never. */
  readonly everyMs: number;
  readonly onChange: 'refuse' | 'report';
  readonly onWarning: (warning: string) => void;
  readonly shown: readonly string[];
  readonly probe: (server: number, fresh: Freshness) => Promise<readonly Probe[]>;
}

/**
 * Embeds the probes again now and then, and compares them with the first ones: at intervals while the encoder is used or has changed;
 * otherwise, and after a lost connection to a server, before the next answer counts.
 */
export class EndpointWatch {
  readonly #options: WatchOptions;
  readonly #expected: readonly Probe[];
  #wasUsed = false;
  readonly #failures = new Map<number, TrawlError>();
  /** Servers whose next answer waits for a check, with the time since when (`performance.now()`). */
  readonly #unchecked = new Map<number, number>();
  readonly #running = new Map<number, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(expected: readonly Probe[], options: WatchOptions) {
    this.#expected = expected;
    this.#options = options;
    this.#plan();
  }

  get failure(): TrawlError | undefined {
    if (this.#options.onChange === 'report') return undefined;
    return this.#failures.values().next().value;
  }

  used(): void {
    this.#wasUsed = true;
  }

  /** A server may have been started again, with another model. */
  lost(server: number): void {
    if (this.#options.everyMs > 0) this.#unchecked.set(server, performance.now());
  }

  /** Waits for the check of a server if one is due. Throws MODEL_MISMATCH, or ENDPOINT_FAILED if it could not be checked. */
  async trusted(server: number): Promise<void> {
    const since = this.#unchecked.get(server);
    if (since !== undefined) {
      const check =
        this.#running.get(server) ?? this.#compare(server, { since }).finally(() => this.#running.delete(server));
      this.#running.set(server, check);
      await check.catch((error: unknown) => {
        const { code, message } = asTrawlError(error);
        // The probes are refused, not the texts that wait for them.
        throw code === 'ENDPOINT_REFUSED' ? new TrawlError('ENDPOINT_FAILED', message, { cause: error }) : error;
      });
    }
    if (this.failure !== undefined) throw this.failure;
  }

  /** Checks every server now. Throws MODEL_MISMATCH, ENDPOINT_FAILED if one could not be checked, or CANCELLED. */
  async check(signal?: AbortSignal): Promise<void> {
    await this.#compareAll({ since: performance.now(), signal }).catch((error: unknown) => {
      throw this.failure ?? error;
    });
    if (this.failure !== undefined) throw this.failure;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #plan(): void {
    const { everyMs } = this.#options;
    if (everyMs === 0) return;
    // At multiples of the interval, so that all encoders of a client check at the same time and share the probes.
    const now = performance.now();
    const next = (Math.floor(now / everyMs) + 1) * everyMs;
    // A millisecond later, because a timer may be early by a part of one.
    this.#timer = setTimeout(() => void this.#checkUsed(next), Math.ceil(next - now) + 1);
    this.#timer.unref();
  }

  async #checkUsed(since: number): Promise<void> {
    const timer = this.#timer;
    try {
      if (this.#wasUsed || this.#failures.size > 0) await this.#compareAll({ since });
      else for (const server of this.#options.shown.keys()) this.#unchecked.set(server, since);
    } catch (error) {
      // An endpoint that does not answer has not changed; its texts fail by themselves.
      const { code, message } = asTrawlError(error);
      if (!/^(ENDPOINT_FAILED|ENDPOINT_REFUSED|CANCELLED)$/.test(code)) this.#options.onWarning(message);
    } finally {
      if (this.#timer === timer && timer !== undefined) this.#plan();
    }
  }

  /** Compares all servers. Throws the first error of a server that could not be compared, after the others. */
  async #compareAll(fresh: Freshness): Promise<void> {
    this.#wasUsed = false;
    const compared = await Promise.allSettled(
      [...this.#options.shown.keys()].map((server) => this.#compare(server, fresh)),
    );
    const failed = compared.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    this.#wasUsed = true;
    throw failed.reason;
  }

  async #compare(server: number, fresh: Freshness): Promise<void> {
    const { shown, probe, onWarning } = this.#options;
    const begun = performance.now();
    const error = changedEndpoint(shown[server]!, this.#expected, await probe(server, fresh));
    // Unless it may have been started again meanwhile.
    if ((this.#unchecked.get(server) ?? 0) <= begun) this.#unchecked.delete(server);
    const hadChanged = this.#failures.size > 0;
    if (error === undefined) this.#failures.delete(server);
    else this.#failures.set(server, error);
    const hasChanged = this.#failures.size > 0;
    if (error !== undefined && !hadChanged) onWarning(error.message);
    if (hadChanged && !hasChanged) onWarning(`The endpoint ${shown.join(', ')} gives the vectors of before again.`);
  }
}

/** The error for probes whose vectors differ from the expected ones; undefined if one model gave both. */
export function changedEndpoint(
  shown: string,
  expected: readonly Probe[],
  found: readonly Probe[],
): TrawlError | undefined {
  const similarities = compareProbes(expected, found);
  if (areSameProbes(similarities)) return undefined;
  return new TrawlError(
    'MODEL_MISMATCH',
    `The encoder ${shown} gives other vectors than the model of the index. Similarities of the probes: ` +
      `${describeSimilarities(similarities)}; one model gives at least 0.999. ` +
      'Start the endpoint with the model of the index, its pooling and without a prompt of its own, or build the index again.',
    { details: { similarities: Object.fromEntries(similarities.map(({ name, cosine }) => [name, cosine])) } },
  );
}
