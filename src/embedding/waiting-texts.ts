import type { ChunkSizer } from './chunk-size.ts';
import type { Chunk, EncodeJob, Piece } from './encode-job.ts';
import { UNCOUNTED } from './text-lanes.ts';

/** Texts counted at once: tokenising takes some 10 µs each, and the chunk they come with waits for it. */
const MAX_COUNTED_AT_ONCE = 256;

/** So many calls for each worker are few. */
const FEW_CALLS = 4;

/**
 * Jobs with texts that no worker has. A chunk begins with the job whose turn it is and is filled with texts of the same
 * number of tokens of all jobs, which the graph takes together. Jobs that have begun no chunk yet and jobs that have take
 * turns: a small one is served within two chunks for each before it that has begun none, and a big one goes on.
 */
export class WaitingTexts {
  readonly #sizer: ChunkSizer;
  /** Jobs with work of which a chunk was begun, in the order of their last. */
  readonly #served = new Set<EncodeJob>();
  /** Jobs with work of which none was. */
  readonly #fresh = new Set<EncodeJob>();
  /** By lane the jobs that have texts in it, the one that waits longest for its share first. */
  readonly #lanes = new Map<number, Set<EncodeJob>>();
  /** Jobs that may have texts to count. */
  readonly #uncounted = new Set<EncodeJob>();
  #texts = 0;
  #weight = 0;
  #droppedTexts = 0;
  #freshIsNext = true;

  constructor(sizer: ChunkSizer) {
    this.#sizer = sizer;
  }

  get texts(): number {
    return this.#texts;
  }

  /** See `ChunkSizer.weight`. */
  get weight(): number {
    return this.#weight;
  }

  /** Texts given up before a worker had them. */
  get droppedTexts(): number {
    return this.#droppedTexts;
  }

  /** A job that has work. */
  add(job: EncodeJob): void {
    job.onDropped = () => this.#drop(job);
    this.#fresh.add(job);
    this.#uncounted.add(job);
    this.#enter(job);
    this.#texts += job.remainingTexts;
    this.#weight += job.remainingWeight;
  }

  /** The next chunk for one of so many workers; null where nothing waits. `counts`: whether tokens are worth counting. */
  gather(workers: number, counts: boolean): Chunk | null {
    const first = this.#nextJob();
    if (first === null) return null;
    const [lane = UNCOUNTED] = first.lanes();
    const company = this.#lanes.get(lane)!;
    this.#fresh.delete(first);
    // A lone call beside a few big ones would wait for its company.
    const calls = this.#fresh.size + this.#served.size;
    const isFilled = lane !== UNCOUNTED && (first.remainingTexts > workers || calls > FEW_CALLS * workers);
    const wanted = this.#sizer.nextWeight(this.#weight, workers, isFilled);
    const share = wanted / company.size;
    const pieces: Piece[] = [];
    let weight = 0;
    let texts = 0;
    let job: EncodeJob | undefined = first;
    do {
      const piece = job.takePiece(lane, share);
      company.delete(job);
      // At the end: the others have their share before it has another.
      if (job.textsIn(lane) > 0) company.add(job);
      if (!job.hasWork) this.#forget(job);
      else if (this.#fresh.delete(job)) this.#served.add(job);
      pieces.push(piece);
      weight += piece.weight;
      texts += piece.places.length;
      [job] = company;
    } while (job !== undefined && (weight < wanted || isRemnant(company, lane, (texts * wanted) / weight / 2)));
    if (company.size === 0) this.#lanes.delete(lane);
    this.#served.delete(first);
    if (first.hasWork) this.#served.add(first);
    this.#texts -= texts;
    this.#weight -= weight;
    if (!counts) this.#uncounted.clear();
    return { pieces, weight, isFilled, uncounted: this.#toCount() };
  }

  /** Tokens of a chunk's `uncounted`, 0 where a text failed. */
  counted(pieces: readonly Piece[], tokens: Int32Array): void {
    let at = 0;
    for (const piece of pieces) {
      const { job, places } = piece;
      job.counted(piece, tokens, at);
      if (job.textsIn(UNCOUNTED) === 0) this.#leave(job, UNCOUNTED);
      if (job.hasWork) this.#enter(job);
      at += places.length;
    }
  }

  /** Empties it. */
  takeAll(): EncodeJob[] {
    const jobs = [...this.#served, ...this.#fresh];
    this.#served.clear();
    this.#fresh.clear();
    this.#lanes.clear();
    this.#uncounted.clear();
    this.#texts = 0;
    this.#weight = 0;
    for (const job of jobs) job.onDropped = null;
    return jobs;
  }

  #drop(job: EncodeJob): void {
    this.#texts -= job.remainingTexts;
    this.#weight -= job.remainingWeight;
    this.#droppedTexts += job.remainingTexts;
    this.#forget(job);
    for (const lane of job.lanes()) this.#leave(job, lane);
  }

  #nextJob(): EncodeJob | null {
    const isForFresh = this.#freshIsNext;
    this.#freshIsNext = !isForFresh;
    const [fresh = null] = this.#fresh;
    const [served = null] = this.#served;
    return isForFresh ? (fresh ?? served) : (served ?? fresh);
  }

  /** A job without work, whose texts and vectors are not to be kept for nobody. */
  #forget(job: EncodeJob): void {
    this.#uncounted.delete(job);
    this.#fresh.delete(job);
    this.#served.delete(job);
  }

  #toCount(): Piece[] {
    const pieces: Piece[] = [];
    let room = MAX_COUNTED_AT_ONCE;
    for (const job of this.#uncounted) {
      const piece = job.uncounted(room);
      if (piece !== null) pieces.push(piece);
      room -= piece?.places.length ?? 0;
      if (room === 0) break;
      this.#uncounted.delete(job);
    }
    return pieces;
  }

  #enter(job: EncodeJob): void {
    for (const lane of job.lanes()) {
      const jobs = this.#lanes.get(lane);
      if (jobs === undefined) this.#lanes.set(lane, new Set([job]));
      else jobs.add(job);
    }
  }

  #leave(job: EncodeJob, lane: number): void {
    const jobs = this.#lanes.get(lane);
    jobs?.delete(job);
    if (jobs?.size === 0) this.#lanes.delete(lane);
  }
}

/** Whether the rest of a lane of equal texts is so few that it would go almost alone. */
function isRemnant(jobs: Iterable<EncodeJob>, lane: number, few: number): boolean {
  if (lane === UNCOUNTED) return false;
  let rest = 0;
  for (const job of jobs) {
    rest += job.textsIn(lane);
    if (rest > few) return false;
  }
  return true;
}
