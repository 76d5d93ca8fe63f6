/** What `npm run check -- replicas --out FILE` writes. */
export interface ReplicasFigures {
  readonly answers: number;
  readonly requests: number;
  readonly failed: number;
  /** Replies that are neither wholly of the old nor wholly of the new index. */
  readonly mixed: number;
  readonly ofOld: number;
  readonly ofNew: number;
  readonly oldAfterSwap: number;
  readonly afterSwap: number;
  readonly repeatedTries: number;
  readonly queries: number;
  readonly changedQueries: number;
  readonly rolloutMs: number;
}
