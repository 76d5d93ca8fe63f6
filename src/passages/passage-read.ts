import { cancelled } from '../abort.ts';
import { bug, deserializeError } from '../errors.ts';
import type { ToPassageWorker } from './passage-protocol.ts';
import type { PassageReply } from './passage-reader.ts';

/** One call of the store that waits for its turns at a reader. */
export abstract class WaitingRead<T> {
  readonly result: Promise<T>;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.fail(cancelled());
  #resolve!: (value: T) => void;
  #reject!: (error: unknown) => void;
  #settled = false;
  /** Readers that died with something of it in hand. */
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

  /** True when there is something to ask for that nobody has been asked for. */
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

/** Documents by row. */
export class DocumentsRead extends WaitingRead<string[]> {
  readonly #rows: ArrayLike<number>;
  readonly #documents: string[];
  /** Places that a reader had no time for. */
  #again: number[] = [];
  #next = 0;
  #left: number;

  constructor(rows: ArrayLike<number>, signal: AbortSignal | undefined) {
    super(signal);
    this.#rows = rows;
    this.#documents = new Array<string>(rows.length);
    this.#left = rows.length;
    if (this.#left === 0) this.finish(this.#documents);
  }

  override get hasWork(): boolean {
    return !this.isSettled && (this.#again.length > 0 || this.#next < this.#rows.length);
  }

  row(place: number): number {
    return this.#rows[place]!;
  }

  /** The next places to read, at most `most`. */
  take(most: number): number[] {
    const places = this.#again.splice(0, most);
    while (places.length < most && this.#next < this.#rows.length) places.push(this.#next++);
    return places;
  }

  /** Places whose reader has died. */
  giveBack(places: readonly number[]): void {
    this.#again.push(...places);
  }

  /** What came for a place: null where the reader had no time. */
  accept(place: number, document: string | null): void {
    if (document === null) {
      this.#again.push(place);
      return;
    }
    this.#documents[place] = document;
    if (--this.#left === 0) this.finish(this.#documents);
  }
}

/** Rows by id, URL or title. */
export class FindRead extends WaitingRead<number[][]> {
  readonly #request: Omit<Extract<ToPassageWorker, { type: 'find' }>, 'type'>;
  readonly #found: number[][] = [];
  #next = 0;

  constructor(request: Omit<Extract<ToPassageWorker, { type: 'find' }>, 'type'>, signal: AbortSignal | undefined) {
    super(signal);
    this.#request = request;
    if (request.keys.length === 0) this.finish(this.#found);
  }

  override get hasWork(): boolean {
    return !this.isSettled && this.#next < this.#request.keys.length;
  }

  /** The next keys, at most `most`. */
  message(most: number): ToPassageWorker {
    const keys = this.#request.keys.slice(this.#next, this.#next + most);
    this.#next += keys.length;
    return { type: 'find', ...this.#request, keys };
  }

  /** The keys whose reader has died are asked for again. */
  giveBack(): void {
    this.#next = this.#found.length;
  }

  accept(reply: PassageReply): void {
    if (reply.type === 'failed') this.fail(deserializeError(reply.error));
    else if (reply.type === 'documents') this.fail(bug('a passage thread answered a question it was not asked'));
    else {
      this.#found.push(...reply.rows);
      if (this.#next === this.#request.keys.length) this.finish(this.#found);
    }
  }
}
