import { hash, randomBytes } from 'node:crypto';
import type { QueryOrigin } from './query-origin.ts';

export type TrajectoryGuess = Required<Pick<QueryOrigin, 'trajectory' | 'trajectoryFrom' | 'turn'>>;

interface Connection {
  readonly id: string;
  /** By the hash of the question, because questions can be long. `lastMs` is by the clock of the caller. */
  readonly rollouts: Map<string, { readonly id: string; turn: number; lastMs: number }>;
  count: number;
}

/** After so long a pause, an equal question is a new rollout: the next epoch asks the same questions. */
const MAX_PAUSE_MS = 10 * 60_000;
/** Rollouts that a connection may have at once. The one that was used first is forgotten. */
const MAX_ROLLOUTS = 2_000;

/**
 * Guesses the trajectory of queries whose client does not name it: requests on one connection with an equal question are the turns of one
 * rollout. A question that a request has twice gets no guess, because its queries may belong to several rollouts.
 */
export class TrajectoryGuesser {
  readonly #connections = new WeakMap<object, Connection>();

  /**
   * @param questions one per query; undefined for a query without a question, or with a trajectory of its own.
   * @returns one per query; undefined where nothing can be guessed.
   */
  guess(
    connection: object,
    questions: readonly (string | undefined)[],
    nowMs: number = performance.now(),
  ): (TrajectoryGuess | undefined)[] {
    const counts = new Map<string, number>();
    for (const question of questions) {
      if (question !== undefined) counts.set(question, (counts.get(question) ?? 0) + 1);
    }
    return questions.map((question) =>
      question === undefined || counts.get(question) !== 1 ? undefined : this.#next(connection, question, nowMs),
    );
  }

  #next(connection: object, question: string, nowMs: number): TrajectoryGuess {
    const known = this.#connections.get(connection) ?? {
      id: randomBytes(6).toString('hex'),
      rollouts: new Map(),
      count: 0,
    };
    this.#connections.set(connection, known);
    const key = hash('sha1', question);
    const earlier = known.rollouts.get(key);
    const isSame = earlier !== undefined && nowMs - earlier.lastMs <= MAX_PAUSE_MS;
    const rollout = isSame ? earlier : { id: `guess-${known.id}-${++known.count}`, turn: 0, lastMs: nowMs };
    rollout.turn++;
    rollout.lastMs = nowMs;
    // Deleted first, so that it becomes the last of the map.
    known.rollouts.delete(key);
    known.rollouts.set(key, rollout);
    if (known.rollouts.size > MAX_ROLLOUTS) known.rollouts.delete(known.rollouts.keys().next().value!);
    return { trajectory: rollout.id, trajectoryFrom: 'guess', turn: rollout.turn };
  }
}
