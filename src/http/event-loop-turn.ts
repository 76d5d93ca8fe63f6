import { setImmediate as nextTurn } from 'node:timers/promises';
import { cancelled } from '../abort.ts';

/** How long one request may hold the event loop before others get their turn, in milliseconds. */
const TURN_MS = 2;

/** The turns of the event loop in which a long piece of work is done, with other requests between them. */
export class EventLoopTurn {
  readonly #signal: AbortSignal;
  #start = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() - this.#start >= TURN_MS;
  }

  /** Resolves in a later turn; CANCELLED where nobody waits for the work any more. */
  async next(): Promise<void> {
    await nextTurn();
    if (this.#signal.aborted) throw cancelled();
    this.#start = performance.now();
  }
}
