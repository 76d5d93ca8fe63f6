/** How the server changed the answer to a query on purpose (`src/server/perturbation/`). */
export interface Perturbed {
  /** Gold passages that are missing from the hits. */
  readonly droppedGold?: number;
  /** Passages among the hits that no search found. */
  readonly distractors?: number;
  /** How long the request was held back before its search, in milliseconds. */
  readonly delayMs?: number;
}

/** Whether the hits are not those of the search. A delay alone changes no hit. */
export function hasOtherHits(perturbed: Perturbed | undefined): boolean {
  return (perturbed?.droppedGold ?? 0) > 0 || (perturbed?.distractors ?? 0) > 0;
}
