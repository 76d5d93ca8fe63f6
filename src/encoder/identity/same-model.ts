import { isSameJson } from '../../base/objects.ts';
import type { ModelIdentity } from './model-identity.ts';
import { areSameProbes, compareProbes } from './probe-vectors.ts';

/**
 * The fields by which two models are compared. An endpoint's vectors may differ in their last bits from start to start, and a server
 * of another program may stand behind another address: its probes are compared instead (`haveSameProbes`).
 */
export function comparedFields(model: ModelIdentity): object {
  if (model.endpoint === undefined) return model;
  const { sha256: _, name, maxTokens, endpoint, ...fields } = model;
  const { requests, separator } = endpoint;
  return { ...fields, requests, separator };
}

/** Whether two endpoints give the probes the same vectors. True for models of folders, which have no probes. */
export function haveSameProbes(a: ModelIdentity, b: ModelIdentity): boolean {
  if (a.endpoint === undefined || b.endpoint === undefined) return a.endpoint === b.endpoint;
  return areSameProbes(compareProbes(a.endpoint.probes, b.endpoint.probes));
}

/** Whether vectors of both models can be in one index. */
export function isSameModel(a: ModelIdentity | null, b: ModelIdentity | null): boolean {
  if (a === null || b === null) return a === b;
  return isSameJson(comparedFields(a), comparedFields(b)) && haveSameProbes(a, b);
}
