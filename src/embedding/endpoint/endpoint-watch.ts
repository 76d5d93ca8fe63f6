import { asTrawlError, TrawlError } from '../../errors.ts';
import type { Probe } from '../../manifest/endpoint-record.ts';
import { areSameProbes, compareProbes, describeSimilarities } from '../../manifest/probe-vectors.ts';

export interface WatchOptions {
  /** Milliseconds between two checks; 0: never. */
  readonly everyMs: number;
  readonly onChange: 'refuse' | 'report';
  readonly onWarning: (warning: string) => void;
  /** The endpoints' addresses for messages. */
  readonly shown: readonly string[];
  /** Embeds the probes on a server. */
  readonly probe: (server: number) => Promise<readonly Probe[]>;
}

/**
 * Embeds the probes again now and then, and compares them with those of the beginning. Only an encoder that was used is checked, and
 * one that has changed until it is as before.
 */
export class EndpointWatch {
  readonly #options: WatchOptions;
  readonly #expected: readonly Probe[];
  #wasUsed = false;
  #failure: TrawlError | undefined;
  #reported = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(expected: readonly Probe[], options: WatchOptions) {
    this.#expected = expected;
    this.#options = options;
    this.#plan();
  }

  get failure(): TrawlError | undefined {
    return this.#failure;
  }

  used(): void {
    this.#wasUsed = true;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #plan(): void {
    const { everyMs } = this.#options;
    if (everyMs === 0) return;
    this.#timer = setTimeout(() => void this.#check(), everyMs);
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const timer = this.#timer;
    try {
      if (this.#wasUsed || this.#failure !== undefined) await this.#compare();
    } catch (error) {
      // An endpoint that does not answer has not changed; its texts fail by themselves.
      const { code, message } = asTrawlError(error);
      if (!/^(ENDPOINT_FAILED|ENDPOINT_REFUSED|CANCELLED)$/.test(code)) this.#options.onWarning(message);
    } finally {
      if (this.#timer === timer && timer !== undefined) this.#plan();
    }
  }

  async #compare(): Promise<void> {
    const { shown, probe, onChange, onWarning } = this.#options;
    this.#wasUsed = false;
    for (const [server, address] of shown.entries()) {
      const error = changedEndpoint(address, this.#expected, await probe(server));
      if (error === undefined) continue;
      if (!this.#reported) onWarning(error.message);
      this.#reported = true;
      if (onChange === 'refuse') this.#failure = error;
      return;
    }
    if (this.#reported) onWarning(`The endpoint ${shown.join(', ')} gives the vectors of before again.`);
    this.#reported = false;
    this.#failure = undefined;
  }
}

/** The error for probes with other vectors than the expected ones; undefined if they are those of one model. */
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
