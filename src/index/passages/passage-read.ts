import { cancelled } from '../../base/abort.ts';
import { bug, deserializeError } from '../../base/errors.ts';
import type { PassageReply, PassageRequest, RowContent } from './passage-protocol.ts';

/** A call of the store, split into messages for the readers. */
abstract class WaitingRead<T> {
  readonly result: Promise<T>;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.fail(cancelled());
  #resolve!: (value: T) => void;
  #reject!: (error: unknown) => void;
  #settled = false;
  /** Readers that died while they read for this call. */
  deaths = 0;

  constructor(signal: AbortSignal | undefined) {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#signal = signal;
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Whether some rows or keys have not been sent to a reader. */
  abstract get hasWork(): boolean;

  get isSettled(): boolean {
    return this.#settled;
  }

  fail(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  protected finish(value: T): void {
    if (this.#settle()) this.#resolve(value);
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

/** Documents or ids by row. A place is a position in the list of rows. */
export class DocumentsRead extends WaitingRead<string[]> {
  readonly what: RowContent;
  readonly #rows: ArrayLike<number>;
  readonly #documents: string[];
  /** Places to read again. */
  #requeued: number[] = [];
  #next = 0;
  #missing: number;

  constructor(what: RowContent, rows: ArrayLike<number>, signal: AbortSignal | undefined) {
    super(signal);
    this.what = what;
    this.#rows = rows;
    this.#documents = new Array<string>(rows.length);
    this.#missing = rows.length;
    if (this.#missing === 0) this.finish(this.#documents);
  }

  override get hasWork(): boolean {
    return !this.isSettled && (this.#requeued.length > 0 || this.#next < this.#rows.length);
  }

  row(place: number): number {
    return this.#rows[place]!;
  }

  /** The next places to read, at most `most`. */
  take(most: number): number[] {
    const places = this.#requeued.splice(0, most);
    while (places.length < most && this.#next < this.#rows.length) places.push(this.#next++);
    return places;
  }

  /** Puts the places back to be read again, after their reader died. */
  requeue(places: readonly number[]): void {
    this.#requeued.push(...places);
  }

  /** Stores the document or id of a place; null if the reader ran out of time. */
  accept(place: number, document: string | null): void {
    if (document === null) {
      this.#requeued.push(place);
      return;
    }
    this.#documents[place] = document;
    if (--this.#missing === 0) this.finish(this.#documents);
  }
}

/** Rows by id, URL or title. Only one reader at a time works on it. */
export class FindRead extends WaitingRead<number[][]> {
  readonly #request: Omit<Extract<PassageRequest, { type: 'find' }>, 'type'>;
  readonly #found: number[][] = [];
  #next = 0;

  constructor(request: Omit<Extract<PassageRequest, { type: 'find' }>, 'type'>, signal: AbortSignal | undefined) {
    super(signal);
    this.#request = request;
    if (request.keys.length === 0) this.finish(this.#found);
  }

  override get hasWork(): boolean {
    return !this.isSettled && this.#next < this.#request.keys.length;
  }

  /** The message for the next keys, at most `most`. */
  message(most: number): PassageRequest {
    const keys = this.#request.keys.slice(this.#next, this.#next + most);
    this.#next += keys.length;
    return { type: 'find', ...this.#request, keys };
  }

  /** Puts the keys of the last message back, after its reader died. */
  requeue(): void {
    this.#next = this.#found.length;
  }

  accept(reply: PassageReply): void {
    if (reply.type === 'failed') this.fail(deserializeError(reply.error));
    else if (reply.type === 'documents') this.fail(bug('a passage reader answered find with documents'));
    else {
      this.#found.push(...reply.rows);
      if (this.#next === this.#request.keys.length) this.finish(this.#found);
    }
  }
}
