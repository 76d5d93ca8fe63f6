import { TrawlError } from '../../errors.ts';
import { HeldIndex } from '../../index-files/held-index.ts';

/** How long the files of an index stay open after the last request for one. */
const KEEP_MS = 10 * 60_000;
/** Indexes whose files are open at the same time. */
const MAX_HELD = 8;

interface Held {
  readonly index: HeldIndex;
  readonly name: string;
  uses: number;
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

  /** Opens the files of a folder as they are now, or finds them open. @throws TrawlError of `HeldIndex.open`; OVERLOADED. */
  async hold(name: string, folder: string): Promise<HeldIndex> {
    const index = await HeldIndex.open(folder);
    const key = keyOf(name, index.snapshot.id);
    const open = this.#held.get(key);
    if (open !== undefined || this.#closed || !(await this.#makeRoom())) {
      await index.close();
      if (open === undefined) {
        throw new TrawlError(
          'OVERLOADED',
          `Clients are copying ${MAX_HELD} indexes of this server, which is the limit.`,
        );
      }
      open.usedAt = performance.now();
      return open.index;
    }
    this.#held.set(key, { index, name, uses: 0, usedAt: performance.now() });
    this.#timer ??= setInterval(() => void this.#closeUnused(), Math.max(10, this.#keepMs / 10)).unref();
    return index;
  }

  /** Takes an index for one reply. Undefined if it is not held. */
  use(name: string, id: string): { readonly index: HeldIndex; release(): void } | undefined {
    const held = this.#held.get(keyOf(name, id));
    if (held === undefined || this.#closed) return undefined;
    held.uses++;
    let released = false;
    return {
      index: held.index,
      release: () => {
        if (released) return;
        released = true;
        held.uses--;
        held.usedAt = performance.now();
        if (this.#closed && held.uses === 0) void closed(held.index);
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const unused = [...this.#held.values()].filter(({ uses }) => uses === 0);
    this.#held.clear();
    await Promise.all(unused.map(({ index }) => closed(index)));
  }

  async #closeUnused(): Promise<void> {
    const now = performance.now();
    for (const [key, { index, uses, usedAt }] of this.#held) {
      if (uses > 0 || now - usedAt < this.#keepMs) continue;
      this.#held.delete(key);
      await closed(index);
    }
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Closes the index that was not used for longest, if there are too many. False if all are in use. */
  async #makeRoom(): Promise<boolean> {
    if (this.#held.size < MAX_HELD) return true;
    const [oldest] = [...this.#held].filter(([, { uses }]) => uses === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest === undefined) return false;
    this.#held.delete(oldest[0]);
    await closed(oldest[1].index);
    return true;
  }
}

/** Failing to close files that were only read loses nothing, and must not end the server. */
async function closed(index: HeldIndex): Promise<void> {
  await index.close().catch(() => undefined);
}

function keyOf(name: string, id: string): string {
  return `${name} ${id}`;
}
