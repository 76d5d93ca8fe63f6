import type { OriginSources } from '../../src/server/recording/read-origins.ts';
import type { HookedRequest, SearchHook } from '../../src/server/search-hook.ts';
import type { GoldPassages } from './gold-passages.ts';
import { PerturbedRequest } from './perturbed-request.ts';
import type { AddressPerturbation } from './request-perturbation.ts';
import { PERTURBATIONS, type PerturbationSettings } from './settings.ts';
import { UnansweredRequests } from './unanswered-requests.ts';

/** Perturbs the searches of an address. One object serves all its requests. */
export class Perturbation implements SearchHook, AddressPerturbation {
  readonly settings: PerturbationSettings;
  readonly gold: GoldPassages | null;
  readonly unanswered = new UnansweredRequests();
  readonly changes = PERTURBATIONS;

  constructor(settings: PerturbationSettings, gold: GoldPassages | null = null) {
    this.settings = settings;
    this.gold = gold;
  }

  get facts(): object {
    const { rates, seed, distractors, delayMs } = this.settings;
    return { rates, seed, distractors, delayMs };
  }

  begin(sources: OriginSources, count: (name: string) => void): HookedRequest {
    return new PerturbedRequest(this, sources, count);
  }
}
