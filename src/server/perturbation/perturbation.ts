import type { GoldPassages } from './gold-passages.ts';
import type { PerturbationSettings } from './settings.ts';
import { UnansweredRequests } from './unanswered-requests.ts';

/** Perturbs the searches of an address. One object serves all its requests. */
export class Perturbation {
  readonly settings: PerturbationSettings;
  /** Null if no gold passages are known: none are dropped then. */
  readonly gold: GoldPassages | null;
  readonly unanswered = new UnansweredRequests();

  constructor(settings: PerturbationSettings, gold: GoldPassages | null = null) {
    this.settings = settings;
    this.gold = gold;
  }
}
