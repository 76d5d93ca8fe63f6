import { TrawlError } from '../errors.ts';
import type { Retriever } from '../retrieval/retriever.ts';

export const SERVER_STATES = ['starting', 'ready', 'stopping'] as const;
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * The retriever as the server sees it over time. The server listens before an index is open, so that a prober hears
 * «starting» and how far it is rather than a refused connection.
 */
export class RetrieverHolder {
  #state: ServerState = 'starting';
  #retriever: Retriever | undefined;
  #progress = 'starting';

  static of(retriever: Retriever): RetrieverHolder {
    const holder = new RetrieverHolder();
    holder.ready(retriever);
    return holder;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** What the start is doing now, for a person. */
  get progress(): string {
    return this.#progress;
  }

  /** The retriever, also while stopping; undefined before it is open. */
  get retriever(): Retriever | undefined {
    return this.#retriever;
  }

  report(progress: string): void {
    if (this.#state === 'starting') this.#progress = progress;
  }

  ready(retriever: Retriever): void {
    this.#retriever = retriever;
    // A stop that came during the start stays a stop.
    if (this.#state === 'stopping') return;
    this.#state = 'ready';
    this.#progress = 'ready';
  }

  /** From here on new requests are refused; running ones end as usual. */
  stop(): void {
    this.#state = 'stopping';
    this.#progress = 'stopping';
  }

  /** The retriever for a new request, or NOT_READY. */
  require(): Retriever {
    if (this.#state === 'ready' && this.#retriever !== undefined) return this.#retriever;
    throw new TrawlError(
      'NOT_READY',
      this.#state === 'stopping'
        ? 'The server is stopping. Send the request to another one, or again when it is back.'
        : `The server is starting (${this.#progress}). GET /readyz says when it is ready.`,
    );
  }
}
