import { setTimeout as sleep } from 'node:timers/promises';
import { untilAborted } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { GroupRetriever } from '../../search/group/group-retriever.ts';
import type { OpenRetriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import {
  IndexSlot,
  type IndexTarget,
  type Lease,
  type OnCloseFailed,
  type OpenIndex,
  serverStopping,
} from './index-slot.ts';

export type ServerState = 'starting' | 'ready' | 'stopping';

/**
 * The indexes of a server, and its state from start to stop. The server listens before the indexes are open, so that health probes
 * get the progress of the start instead of a refused connection.
 */
export class IndexRegistry {
  #state: ServerState = 'starting';
  /** Why an index could not be opened at the start. */
  #failure: unknown;
  /** Resolves when the start ends: the server is ready, or it stops, or an index could not be opened. */
  readonly #started: Promise<void>;
  #endStart: () => void = () => undefined;
  /** Requests in `untilStarted`. */
  #waiting = 0;
  readonly #slots: Map<string, IndexSlot>;
  /** The groups with the names of their indexes. */
  readonly groups: ReadonlyMap<string, readonly string[]>;

  /**
   * The first slot is the default index. Without slots, `ready` adds the only one. `groups`: names of several indexes that requests can
   * search as one.
   *
   * @throws TrawlError USAGE if a group has the name of an index, or an index that is not served.
   */
  constructor(slots: readonly IndexSlot[] = [], groups: ReadonlyMap<string, readonly string[]> = new Map()) {
    this.#started = new Promise((resolve) => (this.#endStart = resolve));
    this.#slots = new Map(slots.map((slot) => [slot.name, slot]));
    this.groups = groups;
    for (const [group, names] of groups) {
      const advice = 'Choose another name for the group: --group NAME=INDEX,INDEX.';
      if (this.#slots.has(group)) throw new TrawlError('USAGE', `An index has the name ${group}. ${advice}`);
      const unknown = names.find((name) => !this.#slots.has(name));
      if (unknown === undefined) continue;
      throw new TrawlError(
        'USAGE',
        `The group ${group} has the index ${unknown}, which is not served. Expected ${[...this.#slots.keys()].join(', ')}.`,
      );
    }
  }

  /** A registry of indexes that `open` opens. @throws TrawlError USAGE if two indexes have the same name. */
  static opening(
    targets: readonly (IndexTarget & { readonly name: string })[],
    open: OpenIndex,
    groups: ReadonlyMap<string, readonly string[]> = new Map(),
    onCloseFailed?: OnCloseFailed,
  ): IndexRegistry {
    const names = targets.map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) {
      const advice = 'Choose another name for one: --index NAME=DIR.';
      throw new TrawlError('USAGE', `Two indexes have the name ${twice}. ${advice}`);
    }
    const slots = targets.map(({ name, ...target }) => new IndexSlot(name, target, open, onCloseFailed));
    return new IndexRegistry(slots, groups);
  }

  static single(retriever: OpenRetriever): IndexRegistry {
    const registry = new IndexRegistry();
    registry.ready(retriever);
    return registry;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** The default index is first. */
  get slots(): readonly IndexSlot[] {
    return [...this.#slots.values()];
  }

  get progress(): string {
    if (this.#state !== 'starting') return this.#state;
    const opening = this.slots.find(({ progress }) => progress.stage !== 'ready' && progress.stage !== 'waiting');
    if (opening === undefined) return 'starting';
    return this.#slots.size === 1 ? opening.progress.doing : `${opening.name}: ${opening.progress.doing}`;
  }

  /** The retriever of the default index; undefined before it is open. */
  get retriever(): OpenRetriever | undefined {
    return this.slots[0]?.retriever;
  }

  /** @throws TrawlError INDEX_EXISTS if an index or a group has the name. */
  requireFree(name: string): void {
    if (!this.#slots.has(name) && !this.groups.has(name)) return;
    throw new TrawlError(
      'INDEX_EXISTS',
      `The server already has an index or a group with the name ${name}. Choose another name, or remove that index first.`,
    );
  }

  /** Adds an index while the server runs, as the last one. @throws TrawlError INDEX_EXISTS if its name is taken. */
  add(slot: IndexSlot): void {
    this.requireFree(slot.name);
    if (this.#state === 'stopping') throw this.#notReady();
    this.#slots.set(slot.name, slot);
  }

  /**
   * Removes an index while the server runs: new requests no longer find it. The caller closes the slot, which waits for the running
   * ones.
   *
   * @throws TrawlError NOT_FOUND; NOT_SUPPORTED for an index of a group.
   */
  remove(name: string): IndexSlot {
    const slot = this.slot(name);
    const group = [...this.groups].find(([, members]) => members.includes(name))?.[0];
    if (group !== undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `${name} belongs to the group ${group}, so it cannot be removed. Leave it out of --group ${group} and restart the server first.`,
      );
    }
    this.#slots.delete(name);
    return slot;
  }

  /** Makes an open retriever the only index. */
  ready(retriever: OpenRetriever): void {
    const slot = this.#slots.get(retriever.info.index) ?? new IndexSlot(retriever.info.index);
    slot.set(retriever);
    this.#slots.clear();
    this.#slots.set(slot.name, slot);
    this.#start();
  }

  /**
   * Opens all indexes, one after another. The server is ready afterwards.
   *
   * @throws TrawlError of the first index that cannot be opened; requests are refused with NOT_READY and its code from then on.
   */
  async open(): Promise<void> {
    try {
      for (const slot of this.slots) if (this.#state === 'starting') await slot.load();
    } catch (error) {
      if (this.#state === 'starting') this.#failure = error;
      this.#endStart();
      throw error;
    }
    this.#start();
  }

  #start(): void {
    // The server may be stopping already.
    if (this.#state !== 'stopping') this.#state = 'ready';
    this.#endStart();
  }

  /**
   * Waits until the start ends, but at most `ms` milliseconds, and not at all if `most` requests wait already.
   *
   * @throws TrawlError CANCELLED as soon as the signal is aborted.
   */
  async untilStarted({ ms, most, signal }: { ms: number; most: number; signal: AbortSignal }): Promise<void> {
    if (this.#state !== 'starting' || ms <= 0 || this.#waiting >= most) return;
    const timer = new AbortController();
    this.#waiting++;
    try {
      await untilAborted(Promise.race([this.#started, sleep(ms, undefined, timer)]), signal);
    } finally {
      this.#waiting--;
      timer.abort();
    }
  }

  /** @throws TrawlError NOT_FOUND for an unknown name. */
  slot(name?: string): IndexSlot {
    const slot = name === undefined ? this.slots[0] : this.#slots.get(name);
    if (slot !== undefined) return slot;
    const details = { param: 'index' };
    if (name === undefined) {
      if (this.#state !== 'ready') throw this.#notReady();
      throw new TrawlError('NOT_FOUND', 'The server has no index yet.', { details });
    }
    const group = this.groups.get(name)?.join(', ');
    if (group !== undefined) {
      throw new TrawlError('NOT_SUPPORTED', `${name} is a group of indexes. Name one of them: ${group}.`, { details });
    }
    const known = [...this.#slots.keys(), ...this.groups.keys()].slice(0, 20).join(', ');
    const asked = JSON.stringify(name.slice(0, 100));
    throw new TrawlError('NOT_FOUND', `Index ${asked} not found. Expected ${known}.`, { details });
  }

  /** The slots of an index, or of all indexes of a group. @throws TrawlError NOT_FOUND for an unknown name. */
  slotsOf(name?: string): readonly IndexSlot[] {
    const group = name === undefined ? undefined : this.groups.get(name);
    return group === undefined ? [this.slot(name)] : group.map((member) => this.slot(member));
  }

  /**
   * The facts of an index or a group, and why it fails, if it does; undefined before it is open.
   *
   * @throws TrawlError NOT_FOUND for an unknown name.
   */
  factsOf(name?: string): { readonly info: RetrieverInfo; readonly failure: TrawlError | undefined } | undefined {
    if (name === undefined) return this.retriever;
    if (!this.groups.has(name)) return this.slot(name).retriever;
    const slots = this.slotsOf(name);
    const retrievers = slots.flatMap(({ retriever }) => retriever ?? []);
    if (retrievers.length < slots.length) return undefined;
    const { info } = new GroupRetriever(name, retrievers);
    return { info, failure: retrievers.find(({ failure }) => failure !== undefined)?.failure };
  }

  /** The first index whose encoder has one of these names, earlier names first; undefined if there is none. */
  indexWithModel(names: readonly string[]): string | undefined {
    const slots = names.flatMap((name) => this.slots.filter(({ retriever }) => retriever?.info.model?.name === name));
    return slots[0]?.name;
  }

  /** Refuses new requests and loads; running ones finish. */
  stop(): void {
    this.#state = 'stopping';
    this.#endStart();
    for (const slot of this.slots) slot.stop();
  }

  /** Waits until all requests have ended, then closes every index. */
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
    if (name !== undefined && this.groups.has(name)) return this.#leaseGroup(name, this.slotsOf(name));
    const lease = this.slot(name).lease();
    if (lease === undefined) throw this.#notReady();
    return lease;
  }

  /**
   * Leases several indexes and groups, to be searched as one; an index that is in two of them is searched once.
   *
   * @throws TrawlError NOT_READY or NOT_FOUND.
   */
  leaseAll(names: readonly string[]): Lease {
    this.requireReady();
    return this.#leaseGroup(names.join(','), [...new Set(names.flatMap((name) => this.slotsOf(name)))]);
  }

  #leaseGroup(name: string, slots: readonly IndexSlot[]): Lease {
    const leases = slots.flatMap((slot) => slot.lease() ?? []);
    const release = (): void => {
      for (const lease of leases) lease.release();
    };
    if (leases.length < slots.length) {
      release();
      throw this.#notReady();
    }
    const retrievers = leases.map(({ retriever }) => retriever);
    return { retriever: new GroupRetriever(name, retrievers), release };
  }

  #notReady(): TrawlError {
    if (this.#failure !== undefined) {
      const { code } = asTrawlError(this.#failure);
      return new TrawlError(
        'NOT_READY',
        `The server failed to start (${code}) and is exiting. Its log has the reason.`,
      );
    }
    if (this.#state === 'stopping') return serverStopping();
    return new TrawlError(
      'NOT_READY',
      `The server is starting (${this.progress}). GET /readyz returns 200 when it is ready.`,
    );
  }
}
