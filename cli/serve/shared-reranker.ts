import type { Reranker } from '../../src/encoder/rerank/reranker.ts';

/**
 * The reranker of all indexes of a server. It is opened with the first index, when the server already listens, and kept when indexes
 * are reloaded.
 */
export class SharedReranker {
  readonly #open: () => Promise<Reranker>;
  #opening: Promise<Reranker> | undefined;

  constructor(open: () => Promise<Reranker>) {
    this.#open = open;
  }

  get(): Promise<Reranker> {
    const opening = this.#opening ?? this.#open();
    this.#opening = opening;
    // A reload tries again.
    opening.catch(() => {
      this.#opening = undefined;
    });
    return opening;
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }
}
