import type { EncodeCall, PoolUser } from './encode-call.ts';

interface UserCalls {
  /** Started calls with waiting texts, the least recently served first. */
  readonly started: Set<EncodeCall>;
  /** Calls of which no thread has received a text yet, in the order of their arrival. */
  readonly unstarted: Set<EncodeCall>;
  unstartedIsNext: boolean;
}

/**
 * Decides which waiting call begins the next chunk. The encoders that share a pool are served round robin, so that many calls of
 * one encoder do not delay a call of another. Within an encoder, unstarted and started calls alternate: a new call waits two
 * chunks for each unstarted call before it, and large calls still advance.
 */
export class CallOrder {
  /** Users with waiting calls; the next to be served is first. */
  readonly #users = new Map<PoolUser, UserCalls>();
  #size = 0;

  /** Calls with waiting texts. */
  get size(): number {
    return this.#size;
  }

  /** Adds an unstarted call. */
  add(call: EncodeCall): void {
    const calls = this.#users.get(call.user);
    if (calls === undefined) {
      this.#users.set(call.user, { started: new Set(), unstarted: new Set([call]), unstartedIsNext: true });
    } else calls.unstarted.add(call);
    this.#size++;
  }

  /** The call that begins the next chunk, or null. Marks it as started and moves its encoder to the end of the order. */
  next(): EncodeCall | null {
    const [entry] = this.#users;
    if (entry === undefined) return null;
    const [user, calls] = entry;
    this.#users.delete(user);
    this.#users.set(user, calls);
    const [unstarted] = calls.unstarted;
    const [started] = calls.started;
    const call = (calls.unstartedIsNext ? (unstarted ?? started) : (started ?? unstarted))!;
    calls.unstartedIsNext = !calls.unstartedIsNext;
    calls.unstarted.delete(call);
    calls.started.delete(call);
    calls.started.add(call);
    return call;
  }

  /** Marks a call as started because texts of it joined another call's chunk. */
  start(call: EncodeCall): void {
    const calls = this.#users.get(call.user);
    if (calls?.unstarted.delete(call) === true) calls.started.add(call);
  }

  /** Removes a call without waiting texts, so that its texts and vectors can be freed. */
  delete(call: EncodeCall): void {
    const calls = this.#users.get(call.user);
    if (calls === undefined || !(calls.started.delete(call) || calls.unstarted.delete(call))) return;
    this.#size--;
    if (calls.started.size + calls.unstarted.size === 0) this.#users.delete(call.user);
  }

  /** All calls, or those of one user. */
  calls(user?: PoolUser): EncodeCall[] {
    const found = user === undefined ? [...this.#users.values()] : [this.#users.get(user) ?? []].flat();
    return found.flatMap(({ started, unstarted }) => [...started, ...unstarted]);
  }
}
