import type { ChunkSizer } from './chunk-size.ts';
import { type Chunk, type EncodeCall, type PoolUser, type Slice, UNGROUPED } from './encode-call.ts';

/** Most waiting texts whose tokens a thread counts before a chunk, which this delays by about 10 µs per text. */
const MAX_COUNTED_PER_CHUNK = 256;

/**
 * While at most this many other calls per thread wait, a small call (at most one text per thread) begins a chunk of the size for
 * single texts. The larger chunk for a group would delay its answer.
 */
const FEW_CALLS_PER_THREAD = 4;

/** The texts that no thread has yet. A chunk begins with texts of the next call and is filled with texts of equal length from all calls. */
export class WaitingTexts {
  readonly #sizer: ChunkSizer;
  readonly #order = new CallOrder();
  /** The calls that have texts in each bucket; the next to get a share is first. */
  readonly #buckets = new Map<number, Set<EncodeCall>>();
  /** Calls that may have texts to count. */
  readonly #uncounted = new Set<EncodeCall>();
  /** Weight of all waiting texts; see `ChunkSizer.weight`. */
  weight = 0;

  constructor(sizer: ChunkSizer) {
    this.#sizer = sizer;
  }

  add(call: EncodeCall): void {
    call.onDropped = () => this.#drop(call);
    this.#order.add(call);
    this.#uncounted.add(call);
    this.#enterBuckets(call);
    call.user.waitingTexts += call.remainingTexts;
    this.weight += call.remainingWeight;
  }

  /** The next chunk for one of `threads` threads; null if no text waits. `countsTokens`: whether to count tokens of waiting texts. */
  nextChunk(threads: number, countsTokens: boolean): Chunk | null {
    const first = this.#order.next();
    if (first === null) return null;
    const [bucket = UNGROUPED] = first.buckets();
    const fillsChunk = first.remainingTexts > threads || this.#order.size - 1 > FEW_CALLS_PER_THREAD * threads;
    const isGrouped = bucket !== UNGROUPED && fillsChunk;
    const target = this.#sizer.nextWeight(this.weight, threads, isGrouped);
    const slices = this.#fill(first, bucket, target);
    const weight = slices.reduce((sum, slice) => sum + slice.weight, 0);
    this.weight -= weight;
    if (!countsTokens) this.#uncounted.clear();
    return { slices, weight, isGrouped, uncounted: this.#textsToCount() };
  }

  /** Texts of a bucket that weigh about `target`: a share of `first`, then one of each other call with texts in the bucket, in turns. */
  #fill(first: EncodeCall, bucket: number, target: number): Slice[] {
    const calls = this.#buckets.get(bucket)!;
    const share = target / calls.size;
    const slices: Slice[] = [];
    let weight = 0;
    let texts = 0;
    for (let call: EncodeCall | undefined = first; call !== undefined; [call] = calls) {
      const slice = call.takeSlice(bucket, share);
      slices.push(slice);
      weight += slice.weight;
      texts += slice.indexes.length;
      call.user.waitingTexts -= slice.indexes.length;
      // At the end of the set, so that every call gets one share before any gets a second.
      calls.delete(call);
      if (call.textsIn(bucket) > 0) calls.add(call);
      if (call.hasWork) this.#order.start(call);
      else this.#forget(call);
      // A chunk of the target weight has about texts * target / weight texts. If at most half as many are left, they join this chunk.
      if (weight >= target && !isRemnant(calls, bucket, (texts * target) / weight / 2)) break;
    }
    if (calls.size === 0) this.#buckets.delete(bucket);
    return slices;
  }

  /** Stores the token counts of a chunk's `uncounted`; 0 means that tokenising failed. */
  setTokens(slices: readonly Slice[], tokens: Int32Array): void {
    let offset = 0;
    for (const slice of slices) {
      const { call, indexes } = slice;
      call.setTokens(slice, tokens, offset);
      if (call.textsIn(UNGROUPED) === 0) this.#leaveBucket(call, UNGROUPED);
      if (call.hasWork) this.#enterBuckets(call);
      offset += indexes.length;
    }
  }

  /** Removes and returns the calls of one user, or of all. */
  takeCalls(user?: PoolUser): EncodeCall[] {
    const calls = this.#order.calls(user);
    for (const call of calls) {
      this.#remove(call);
      call.onDropped = null;
    }
    return calls;
  }

  #drop(call: EncodeCall): void {
    call.user.droppedTexts += call.remainingTexts;
    this.#remove(call);
  }

  #remove(call: EncodeCall): void {
    call.user.waitingTexts -= call.remainingTexts;
    this.weight -= call.remainingWeight;
    this.#forget(call);
    for (const bucket of call.buckets()) this.#leaveBucket(call, bucket);
  }

  /** Removes a call from the order and from counting. Without a reference to the call, its texts and vectors can be freed. */
  #forget(call: EncodeCall): void {
    this.#uncounted.delete(call);
    this.#order.delete(call);
  }

  #textsToCount(): Slice[] {
    const slices: Slice[] = [];
    let room = MAX_COUNTED_PER_CHUNK;
    for (const call of this.#uncounted) {
      const slice = call.textsToCount(room);
      if (slice !== null) slices.push(slice);
      room -= slice?.indexes.length ?? 0;
      if (room === 0) break;
      this.#uncounted.delete(call);
    }
    return slices;
  }

  #enterBuckets(call: EncodeCall): void {
    for (const bucket of call.buckets()) {
      const calls = this.#buckets.get(bucket);
      if (calls === undefined) this.#buckets.set(bucket, new Set([call]));
      else calls.add(call);
    }
  }

  #leaveBucket(call: EncodeCall, bucket: number): void {
    const calls = this.#buckets.get(bucket);
    calls?.delete(call);
    if (calls?.size === 0) this.#buckets.delete(bucket);
  }
}

/** Whether at most `few` texts are left in a bucket of counted texts, too few for a chunk of their own. */
function isRemnant(calls: Iterable<EncodeCall>, bucket: number, few: number): boolean {
  if (bucket === UNGROUPED) return false;
  let rest = 0;
  for (const call of calls) {
    rest += call.textsIn(bucket);
    if (rest > few) return false;
  }
  return true;
}

interface UserCalls {
  /** Started calls with waiting texts, the least recently served first. */
  readonly started: Set<EncodeCall>;
  /** Calls from which no thread has received a text yet, in the order of their arrival. */
  readonly unstarted: Set<EncodeCall>;
  unstartedIsNext: boolean;
}

/**
 * Decides which waiting call begins the next chunk. The encoders that share a pool are served round robin, so that many calls of
 * one encoder do not delay a call of another. Within an encoder, unstarted and started calls alternate: a new call waits two
 * chunks for each unstarted call before it, and large calls still advance.
 */
class CallOrder {
  /** Users with waiting calls; the next to be served is first. */
  readonly #users = new Map<PoolUser, UserCalls>();
  size = 0;

  add(call: EncodeCall): void {
    const calls = this.#users.get(call.user);
    if (calls === undefined) {
      this.#users.set(call.user, { started: new Set(), unstarted: new Set([call]), unstartedIsNext: true });
    } else calls.unstarted.add(call);
    this.size++;
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
    this.size--;
    if (calls.started.size + calls.unstarted.size === 0) this.#users.delete(call.user);
  }

  calls(user?: PoolUser): EncodeCall[] {
    const found = user === undefined ? [...this.#users.values()] : [this.#users.get(user) ?? []].flat();
    return found.flatMap(({ started, unstarted }) => [...started, ...unstarted]);
  }
}
