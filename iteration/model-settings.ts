import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelOverrides } from '../src/embedding/model/model-overrides.ts';
import { readTrawlModelFile } from '../src/embedding/model/trawl-model-file.ts';
import type { ModelIdentity, Precision } from '../src/manifest/model-identity.ts';
import { recordedOverrides } from '../src/retrieval/opening/open-index-encoder.ts';
import { hasOwnSettings, isModelFolder } from './checkpoint.ts';

/**
 * The precision of the new model: that of the index before if both encoders have one architecture. Undefined: the default of the
 * import, or of the model folder.
 */
export async function inheritedPrecision(
  checkpoint: string,
  base: ModelIdentity | null,
): Promise<Precision | undefined> {
  if (base === null || (await architectureOf(checkpoint)) !== base.architecture) return undefined;
  if (!isModelFolder(checkpoint)) return base.precision ?? undefined;
  const { graph, graphs = [graph] } = await readTrawlModelFile(checkpoint);
  return graphs.some(({ precision }) => precision === base.precision) ? (base.precision ?? undefined) : undefined;
}

/**
 * The settings that the new encoder has from the index before. A checkpoint without settings of its own gets all of them. One with its
 * own gets those that options of the index had replaced, and the query template, which only Trawl's model folders know.
 *
 * @param model the new model folder.
 */
export async function inheritedOverrides(
  checkpoint: string,
  model: string,
  base: ModelIdentity | null,
): Promise<ModelOverrides> {
  if (base === null) return {};
  const { maxPositions, dimension: full } = await readTrawlModelFile(model);
  const recorded = recordedOverrides(base);
  const replaced = new Set([...(base.overrides ?? []), ...(isModelFolder(checkpoint) ? [] : ['queryTemplate'])]);
  const wanted = hasOwnSettings(checkpoint)
    ? Object.entries(recorded).filter(([name]) => replaced.has(name))
    : Object.entries(recorded);
  const { maxQueryTokens, maxPassageTokens, pooling, dimension, ...kept } = Object.fromEntries(
    wanted,
  ) as ModelOverrides;
  const positions = maxPositions ?? Number.POSITIVE_INFINITY;
  return {
    ...kept,
    // The graph of the index before pooled itself; that of a checkpoint does not.
    ...(pooling === undefined || pooling === 'none' ? {} : { pooling }),
    ...(dimension === undefined || dimension > full ? {} : { dimension }),
    ...(maxQueryTokens === undefined ? {} : { maxQueryTokens: Math.min(maxQueryTokens, positions) }),
    ...(maxPassageTokens === undefined ? {} : { maxPassageTokens: Math.min(maxPassageTokens, positions) }),
  };
}

/** The settings in which two encoders differ, weights apart, as `queryPrefix "query: ", before ""`. */
export function settingsDiffer(base: ModelIdentity | null, now: ModelIdentity): string[] {
  if (base === null) return [];
  const [old, found] = [settingsOf(base), settingsOf(now)];
  return Object.entries(found).flatMap(([name, value]) => {
    const before = old[name];
    return before === value ? [] : [`${name} ${JSON.stringify(value)}, before ${JSON.stringify(before)}`];
  });
}

function settingsOf(model: ModelIdentity): Record<string, unknown> {
  const { architecture, dimension, similarity, precision } = model;
  return { architecture, similarity, precision, ...recordedOverrides(model), dimension };
}

async function architectureOf(checkpoint: string): Promise<string | undefined> {
  if (isModelFolder(checkpoint)) return (await readTrawlModelFile(checkpoint)).architecture;
  try {
    const { model_type: type } = JSON.parse(readFileSync(join(checkpoint, 'config.json'), 'utf8')) as {
      model_type?: unknown;
    };
    return typeof type === 'string' ? type : undefined;
  } catch {
    // The import says what is wrong with it.
    return undefined;
  }
}
