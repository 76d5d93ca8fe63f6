import { cancelled } from '../../base/abort.ts';
import { deserializeError } from '../../base/errors.ts';
import type { PassageReply, PassageRequest, ReadKind, ReadValue } from './passage-protocol.ts';

/** A call of the store, split into messages for the readers. A place is a position in the list of items. */
export class PassageRead<Value extends ReadValue = ReadValue> {
  readonly kind: ReadKind;
  readonly result: Promise<Value[]>;
  /** Readers that died while they read for this call. */
  deaths = 0;
  readonly #items: ArrayLike<number | string>;
  readonly #values: Value[];
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.fail(cancelled());
  #resolve!: (values: Value[]) => void;
  #reject!: (error: unknown) => void;
  #isSettled = false;
  /** Places to read again. */
  #requeued: number[] = [];
  #next = 0;
  #missing: number;

  constructor(kind: ReadKind, items: ArrayLike<number | string>, signal: AbortSignal | undefined) {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.kind = kind;
    this.#items = items;
    this.#values = new Array<Value>(items.length);
    this.#missing = items.length;
    this.#signal = signal;
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (this.#missing === 0) this.#finish();
  }

  /** Whether some items have not been sent to a reader. */
  get hasWork(): boolean {
    return !this.#isSettled && (this.#requeued.length > 0 || this.#next < this.#items.length);
  }

  item(place: number): number | string {
    return this.#items[place]!;
  }

  /** The next places to read, at most `most`. */
  take(most: number): number[] {
    const places = this.#requeued.splice(0, most);
    while (places.length < most && this.#next < this.#items.length) places.push(this.#next++);
    return places;
  }

  /** Puts places back to be read again. */
  requeue(places: readonly number[]): void {
    this.#requeued.push(...places);
  }

  /** Stores the value of a place; null if the reader ran out of time. */
  accept(place: number, value: Value | null): void {
    if (value === null) {
      this.#requeued.push(place);
      return;
    }
    this.#values[place] = value;
    if (--this.#missing === 0) this.#finish();
  }

  fail(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  #finish(): void {
    if (this.#settle()) this.#resolve(this.#values);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

/** The items of one message to a reader, from one read or several of the same kind. */
export class PassageBatch {
  readonly #parts: { readonly read: PassageRead; readonly places: readonly number[] }[] = [];

  /**
   * Takes at most `maxItems` items from the reads at the head of the queue: an equal share of each read of rows, or one look-up alone.
   * Removes these reads from the queue, so that a read is in one message at a time and cannot block several readers.
   */
  static take(waiting: PassageRead[], maxItems: number): PassageBatch {
    const batch = new PassageBatch();
    const share = Math.max(1, Math.floor(maxItems / waiting.length));
    let left = maxItems;
    while (left > 0 && waiting[0] !== undefined) {
      const [read] = waiting;
      // A retry is sent alone, so that only the read that kills readers fails; a look-up, because each has its own kind and limit.
      const isAlone = read.deaths > 0 || typeof read.kind !== 'string';
      const [first] = batch.#parts;
      if (first !== undefined && (isAlone || read.kind !== first.read.kind)) break;
      waiting.shift();
      if (!read.hasWork) continue;
      // The last read may take the rest.
      const places = read.take(isAlone || waiting.length === 0 ? left : Math.min(left, share));
      left -= places.length;
      batch.#parts.push({ read, places });
      if (isAlone) break;
    }
    return batch;
  }

  get reads(): readonly PassageRead[] {
    return this.#parts.map(({ read }) => read);
  }

  /** Undefined if none of the reads has work. */
  request(budgetMs: number): PassageRequest | undefined {
    const [first] = this.#parts;
    const items = this.#parts.flatMap(({ read, places }) => places.map((place) => read.item(place)));
    return first && { kind: first.read.kind, items, budgetMs };
  }

  /** Passes what was read to the reads. */
  accept({ values, failures }: PassageReply): void {
    const errors = new Map(failures.map(({ index, error }) => [index, error]));
    let at = 0;
    for (const { read, places } of this.#parts) {
      for (const place of places) {
        const error = errors.get(at);
        if (error === undefined) read.accept(place, values[at]!);
        else read.fail(deserializeError(error));
        at++;
      }
    }
  }

  /** Puts the items back to be read again, after their reader died. */
  requeue(): void {
    for (const { read, places } of this.#parts) read.requeue(places);
  }
}
