import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ModelOverrides } from '../embedding/model-overrides.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';

/** The model's folder where the manifest remembers one and it is still there from one of the index's folders, else its name. */
export function recordedModel(folders: readonly string[], { model, modelLocation }: IndexManifest): string {
  if (modelLocation === undefined) return model.name;
  const paths = folders.map((folder) => resolve(folder, modelLocation));
  return paths.find((path) => existsSync(path)) ?? model.name;
}

/** What makes a model the one that the index was made with, whatever its own description says. */
export function recordedOverrides({ model }: IndexManifest): ModelOverrides {
  return {
    queryPrefix: model.prefixes.query,
    passagePrefix: model.prefixes.passage,
    pooling: model.pooling,
    normalize: model.normalize,
    maxQueryTokens: model.maxTokens.query,
    maxPassageTokens: model.maxTokens.passage,
    ...(model.fullDimension === undefined ? {} : { dimension: model.dimension }),
  };
}
