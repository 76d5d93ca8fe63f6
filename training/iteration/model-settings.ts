import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { classesOf, statesPoolingInFiles } from '../../indexer/model-import/model-kind.ts';
import type { ModelIdentity, Pooling, Precision } from '../../src/encoder/identity/model-identity.ts';
import type { JsonObject } from '../../src/encoder/model/json-file.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { STATED_POOLINGS, type StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import { readTrawlModelFile } from '../../src/encoder/model/trawl-model-file.ts';
import { recordedOverrides } from '../../src/search/opening/open-index-encoder.ts';
import { hasOwnSettings, isModelFolder } from './checkpoint.ts';

/**
 * The precision of the new model: the previous index's, if both encoders have one architecture. Undefined: the default of the
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

/** Architectures that also generate text, so that a checkpoint of them is refused unless its pooling is stated. */
const GENERATING = ['qwen3', 't5'];

/**
 * The pooling to give to the import of a checkpoint whose files state none: the option, else, for a bare model of an architecture
 * that also generates text, the previous index's pooling. Other models need none for the import; `inheritedOverrides`
 * gives it to them afterwards.
 */
export async function poolingOfImport(
  checkpoint: string,
  { given, base }: { readonly given: Pooling | undefined; readonly base: ModelIdentity | null },
): Promise<StatedPooling | undefined> {
  if (isModelFolder(checkpoint) || (await statesPoolingInFiles(checkpoint))) return undefined;
  const pooling = given ?? (base !== null && isBareGenerator(checkpoint, base) ? base.pooling : undefined);
  return STATED_POOLINGS.find((stated) => stated === pooling);
}

/** Whether the checkpoint has weights of the same architecture that also generates text, without the head that does (Qwen3Model). */
function isBareGenerator(checkpoint: string, { architecture }: ModelIdentity): boolean {
  const config = configOf(checkpoint);
  const classes = classesOf(config ?? {});
  const hasWeights = ['model.safetensors', 'model.safetensors.index.json'].some((name) =>
    existsSync(join(checkpoint, name)),
  );
  return (
    hasWeights &&
    GENERATING.includes(architecture) &&
    config?.model_type === architecture &&
    classes.length > 0 &&
    classes.every((name) => /^(Qwen3Model|T5(Encoder)?Model)$/.test(name))
  );
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
  const own = new Set(hasOwnSettings(checkpoint) ? Object.keys(recorded) : []);
  if (await statesPoolingInFiles(checkpoint)) own.add('pooling');
  const wanted = Object.entries(recorded).filter(([name]) => replaced.has(name) || !own.has(name));
  const { maxQueryTokens, maxPassageTokens, pooling, dimension, ...kept } = Object.fromEntries(
    wanted,
  ) as ModelOverrides;
  const positions = maxPositions ?? Number.POSITIVE_INFINITY;
  return {
    ...kept,
    // The previous index's graph pooled by itself; a checkpoint's graph does not.
    ...(pooling === undefined || pooling === 'none' ? {} : { pooling }),
    ...(dimension === undefined || dimension > full ? {} : { dimension }),
    maxQueryTokens: maxQueryTokens === undefined ? undefined : Math.min(maxQueryTokens, positions),
    maxPassageTokens: maxPassageTokens === undefined ? undefined : Math.min(maxPassageTokens, positions),
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
  const type = configOf(checkpoint)?.model_type;
  return typeof type === 'string' ? type : undefined;
}

/** The config.json of a checkpoint; undefined if there is none that can be read. The import says what is wrong with it. */
function configOf(checkpoint: string): JsonObject | undefined {
  try {
    const config: unknown = JSON.parse(readFileSync(join(checkpoint, 'config.json'), 'utf8').replace(/^\uFEFF/, ''));
    return typeof config === 'object' && config !== null ? (config as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
