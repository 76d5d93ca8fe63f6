import { TrawlError } from '../../errors.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import { IndexSlot, type IndexTarget, type Lease, type OpenIndex } from './index-slot.ts';

const SERVER_STATES = ['starting', 'ready', 'stopping'] as const;
export type ServerState = (typeof SERVER_STATES)[number];

/**
 * The indexes of a server, and its state from start to stop. The server listens before the indexes are open, so that health probes
 * get the progress of the start instead of a refused connection.
 */
export class RetrieverHolder {
  #state: ServerState = 'starting';
  readonly #slots: Map<string, IndexSlot>;

  /** The first slot is the default index. Without slots, `ready` adds the only one. */
  constructor(slots: readonly IndexSlot[] = []) {
    this.#slots = new Map(slots.map((slot) => [slot.name, slot]));
  }

  /** @throws TrawlError USAGE if two indexes have the same name. */
  static over(targets: readonly (IndexTarget & { readonly name: string })[], open: OpenIndex): RetrieverHolder {
    for (const [i, { name }] of targets.entries()) {
      if (targets.findIndex((other) => other.name === name) === i) continue;
      throw new TrawlError(
        'USAGE',
        `Two indexes have the name ${name}. Choose another name for one: --index NAME=DIR.`,
      );
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

  /** The default index is first. */
  get slots(): readonly IndexSlot[] {
    return [...this.#slots.values()];
  }

  /** Progress of the start in words. */
  get progress(): string {
    if (this.#state !== 'starting') return this.#state;
    const opening = this.slots.find(({ progress }) => progress.stage !== 'ready' && progress.stage !== 'waiting');
    if (opening === undefined) return 'starting';
    return this.#slots.size === 1 ? opening.progress.doing : `${opening.name}: ${opening.progress.doing}`;
  }

  /** Retriever of the default index; undefined before it is open. */
  get retriever(): Retriever | undefined {
    return this.slots[0]?.retriever;
  }

  /** Makes an open retriever the only index. */
  ready(retriever: Retriever): void {
    const slot = this.#slots.get(retriever.info.index) ?? new IndexSlot(retriever.info.index);
    slot.set(retriever);
    this.#slots.clear();
    this.#slots.set(slot.name, slot);
    // The server may be stopping already.
    if (this.#state !== 'stopping') this.#state = 'ready';
  }

  /** Opens all indexes, one after another. The server is ready afterwards. */
  async open(): Promise<void> {
    for (const slot of this.slots) if (this.#state === 'starting') await slot.load();
    if (this.#state !== 'stopping') this.#state = 'ready';
  }

  /** @throws TrawlError NOT_FOUND for an unknown name. */
  slot(name?: string): IndexSlot {
    const slot = name === undefined ? this.slots[0] : this.#slots.get(name);
    if (slot !== undefined) return slot;
    if (name === undefined) throw this.#notReady();
    const known = [...this.#slots.keys()].slice(0, 20).join(', ');
    throw new TrawlError('NOT_FOUND', `Index ${JSON.stringify(name.slice(0, 100))} not found. Expected ${known}.`, {
      details: { param: 'index' },
    });
  }

  /** The first index whose encoder has one of these names, earlier names first; undefined if there is none. */
  indexWithModel(names: readonly string[]): string | undefined {
    const found = names.map((name) => this.slots.find(({ retriever }) => retriever?.info.model?.name === name));
    return found.find((slot) => slot !== undefined)?.name;
  }

  /** Refuses new requests and loads; running ones finish. */
  stop(): void {
    this.#state = 'stopping';
    for (const slot of this.slots) slot.stop();
  }

  /** Waits for all requests, then closes every index. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(this.slots.map((slot) => slot.close()));
  }

  /** @throws TrawlError NOT_READY while starting or stopping. */
  requireReady(): void {
    if (this.#state !== 'ready') throw this.#notReady();
  }

  /**
   * Leases the retriever for a request whose body has been parsed. The request must release it once the text of its reply is made.
   *
   * @throws TrawlError NOT_READY or NOT_FOUND.
   */
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
        ? 'The server is stopping. Send the request to another server, or again after its restart.'
        : `The server is starting (${this.progress}). GET /readyz returns 200 when it is ready.`,
    );
  }
}
