import { TrawlError } from '../errors.ts';
import type { Retriever } from '../retrieval/retriever.ts';
import { IndexSlot, type IndexTarget, type Lease, type OpenIndex } from './index-slot.ts';

export const SERVER_STATES = ['starting', 'ready', 'stopping'] as const;
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * The indexes of a server as its routes see them over time. The server listens before they are open, so that a prober
 * hears «starting» and how far it is rather than a refused connection.
 */
export class RetrieverHolder {
  #state: ServerState = 'starting';
  readonly #slots: Map<string, IndexSlot>;

  /** The first is the default. None given: room for one, which is handed over open (`ready`). */
  constructor(slots: readonly IndexSlot[] = []) {
    this.#slots = new Map(slots.map((slot) => [slot.name, slot]));
  }

  /** @throws TrawlError USAGE for a name that is there twice. */
  static over(targets: readonly (IndexTarget & { readonly name: string })[], open: OpenIndex): RetrieverHolder {
    for (const [i, { name }] of targets.entries()) {
      if (targets.findIndex((other) => other.name === name) === i) continue;
      throw new TrawlError('USAGE', `Two indexes are named ${name}. Name one otherwise: --index NAME=DIR.`);
    }
    return new RetrieverHolder(targets.map(({ name, ...target }) => new IndexSlot(name, target, open)));
  }

  static of(retriever: Retriever): RetrieverHolder {
    const holder = new RetrieverHolder();
    holder.ready(retriever);
    return holder;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** The default first. */
  get slots(): readonly IndexSlot[] {
    return [...this.#slots.values()];
  }

  /** What the start is doing now, for a person. */
  get progress(): string {
    if (this.#state !== 'starting') return this.#state;
    const opening = this.slots.find(({ progress }) => progress.stage !== 'ready' && progress.stage !== 'waiting');
    if (opening === undefined) return 'starting';
    return this.#slots.size === 1 ? opening.progress.doing : `${opening.name}: ${opening.progress.doing}`;
  }

  /** The default index, also while stopping; undefined before it is open. */
  get retriever(): Retriever | undefined {
    return this.slots[0]?.retriever;
  }

  /** Takes a retriever that is open already as the only index. */
  ready(retriever: Retriever): void {
    const slot = this.#slots.get(retriever.info.index) ?? new IndexSlot(retriever.info.index);
    slot.set(retriever);
    this.#slots.clear();
    this.#slots.set(slot.name, slot);
    // A stop that came during the start stays a stop.
    if (this.#state !== 'stopping') this.#state = 'ready';
  }

  /** Opens all indexes, one after another. From its end on requests are answered. */
  async open(): Promise<void> {
    for (const slot of this.slots) if (this.#state === 'starting') await slot.load();
    if (this.#state !== 'stopping') this.#state = 'ready';
  }

  /** @throws TrawlError NOT_FOUND for a name that is none. */
  slot(name?: string): IndexSlot {
    const slot = name === undefined ? this.slots[0] : this.#slots.get(name);
    if (slot !== undefined) return slot;
    if (name === undefined) throw this.#notReady();
    const known = [...this.#slots.keys()].slice(0, 20).join(', ');
    throw new TrawlError(
      'NOT_FOUND',
      `There is no index ${JSON.stringify(name.slice(0, 100))}; this server has ${known}.`,
      {
        details: { param: 'index' },
      },
    );
  }

  /** From here on new requests are refused, and loads that have not begun; what runs ends as usual. */
  stop(): void {
    this.#state = 'stopping';
    for (const slot of this.slots) slot.stop();
  }

  /** Waits for all requests, then closes every index. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(this.slots.map((slot) => slot.close()));
  }

  /** NOT_READY unless requests are answered. */
  requireReady(): void {
    if (this.#state !== 'ready') throw this.#notReady();
  }

  /** The retriever for a new request, to be released when its answer is written. NOT_READY or NOT_FOUND. */
  lease(name?: string): Lease {
    this.requireReady();
    const lease = this.slot(name).lease();
    if (lease === undefined) throw this.#notReady();
    return lease;
  }

  #notReady(): TrawlError {
    return new TrawlError(
      'NOT_READY',
      this.#state === 'stopping'
        ? 'The server is stopping. Send the request to another one, or again when it is back.'
        : `The server is starting (${this.progress}). GET /readyz says when it is ready.`,
    );
  }
}
