import { TrawlError } from '../../base/errors.ts';
import { HeldIndex } from '../../index/files/held-index.ts';
import { Leased, serverStopping } from './index-slot.ts';

/** How long the files of an index stay open after the last request for one. */
const KEEP_MS = 10 * 60_000;
/** Indexes whose files are open at the same time. */
const MAX_HELD = 8;

interface Held {
  readonly leased: Leased<HeldIndex>;
  /** By `performance.now()`. */
  usedAt: number;
}

/**
 * The indexes of a server that clients copy. Their files stay open until nobody has asked for one for a while, so that a reload or an
 * update of the folder does not take them away in the middle of a copy. They are found by the id of their snapshot.
 */
export class HeldIndexes {
  readonly #held = new Map<string, Held>();
  readonly #keepMs: number;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(keepMs = KEEP_MS) {
    this.#keepMs = keepMs;
  }

  /**
   * Opens the files of a folder as they are now, or finds them open.
   *
   * @throws TrawlError of `HeldIndex.open`; NOT_READY after `close`; OVERLOADED if clients copy from all indexes that may be open.
   */
  async hold(name: string, folder: string): Promise<HeldIndex> {
    const index = await HeldIndex.open(folder);
    try {
      return await this.#keep(snapshotKey(name, index.snapshot.id), index);
    } catch (error) {
      await closed(index);
      throw error;
    }
  }

  /** Keeps an open index, or returns the equal one that is held and closes this one. */
  async #keep(key: string, index: HeldIndex): Promise<HeldIndex> {
    if (this.#closed) throw serverStopping();
    // Nothing is awaited from here until the index is in the map: another call would not find it, and its own would replace it.
    const same = this.#held.get(key);
    if (same !== undefined) {
      same.usedAt = performance.now();
      await closed(index);
      return same.leased.resource;
    }
    const removed = this.#makeRoom();
    this.#held.set(key, { leased: new Leased(index), usedAt: performance.now() });
    this.#timer ??= setInterval(() => void this.#closeUnused(), Math.max(10, this.#keepMs / 10)).unref();
    if (removed !== undefined) await closed(removed);
    return index;
  }

  /** Takes an index for one reply. Undefined if it is not held. */
  use(name: string, id: string): { readonly index: HeldIndex; release(): void } | undefined {
    const held = this.#held.get(snapshotKey(name, id));
    if (held === undefined || this.#closed) return undefined;
    const release = held.leased.lease();
    return {
      index: held.leased.resource,
      release: () => {
        held.usedAt = performance.now();
        release();
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const closing = [...this.#held.values()].map(({ leased }) => ({ isUsed: leased.isUsed, closing: retired(leased) }));
    this.#held.clear();
    // Those that are being copied close after the copy.
    await Promise.all(closing.map(({ isUsed, closing: end }) => (isUsed ? undefined : end)));
  }

  async #closeUnused(): Promise<void> {
    const now = performance.now();
    for (const [key, { leased, usedAt }] of this.#held) {
      if (leased.isUsed || now - usedAt < this.#keepMs) continue;
      this.#held.delete(key);
      await retired(leased);
    }
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Removes the index that was not used for longest, if there are too many. The caller closes it. @throws TrawlError OVERLOADED. */
  #makeRoom(): HeldIndex | undefined {
    if (this.#held.size < MAX_HELD) return undefined;
    const unused = [...this.#held].filter(([, { leased }]) => !leased.isUsed);
    const [oldest] = unused.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest === undefined) {
      throw new TrawlError(
        'OVERLOADED',
        `Clients are copying ${MAX_HELD} indexes of this server, which is the limit. Try again when a copy has ended.`,
      );
    }
    this.#held.delete(oldest[0]);
    return oldest[1].leased.resource;
  }
}

/** Failing to close files that were only read loses nothing, and must not end the server. */
async function closed(index: HeldIndex): Promise<void> {
  await index.close().catch(() => undefined);
}

async function retired(leased: Leased<HeldIndex>): Promise<void> {
  await leased.retire().catch(() => undefined);
}

function snapshotKey(name: string, id: string): string {
  return `${name} ${id}`;
}
