import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes } from '../../src/base/format.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { type PoolingOrigin, readTrawlModelFile, TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';

export type ModelFacts = Awaited<ReturnType<typeof factsOf>>;

/** A model folder, by its absolute path, as `trawl model show` reports it. */
export async function factsOf(folder: string) {
  const described = existsSync(join(folder, TRAWL_MODEL_FILE)) ? await readTrawlModelFile(folder) : undefined;
  const model = await readModelFolder(folder, {}, { kind: 'any' });
  const { name, architecture, dimension, pooling, normalize, similarity, prefixes, maxTokens } = model.identity;
  const files =
    model.files.length > 0
      ? model.files.map(({ path }) => path)
      : [model.graphPath, model.tokenizerPath, ...model.externalData];
  return {
    name,
    folder,
    kind: model.kind,
    architecture,
    dimension,
    pooling,
    /** Where `trawl model add` had the pooling from; null if its description does not say. */
    poolingFrom: described?.poolingFrom ?? null,
    normalize,
    similarity,
    prefixes,
    maxTokens,
    /** The default precision first. */
    precisions: model.precisions,
    /** The precisions that the engine runs; onnxruntime runs the others. */
    enginePrecisions: model.enginePrecisions,
    bytes: files.reduce((sum, path) => sum + statSync(path).size, 0),
    source: described === undefined ? null : sourceOf(described),
  };
}

/** Reads the source that `trawl model add` wrote into a description; null for any other value, such as a text. */
export function sourceOf(
  described: object,
): { readonly kind: string; readonly id: string; readonly revision?: string } | null {
  const { source: value } = described as { readonly source?: unknown };
  const source = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const { kind, id, revision } = source;
  if ((kind !== 'hub' && kind !== 'folder') || typeof id !== 'string') return null;
  return { kind, id, ...(typeof revision === 'string' ? { revision } : {}) };
}

export function factsText(facts: ModelFacts): string {
  const { source, prefixes, maxTokens, poolingFrom, enginePrecisions } = facts;
  const origin = poolingFrom === null ? '' : ORIGINS[poolingFrom];
  const engine = enginePrecisions.length === 0 ? '' : ` (${enginePrecisions.join(' and ')}: by the engine)`;
  const revision = source?.revision === undefined ? '' : `@${source.revision}`;
  return [
    facts.folder,
    `  name          ${facts.name}`,
    ...(source === null ? [] : [`  source        ${source.kind === 'hub' ? 'hub' : 'folder'} ${source.id}${revision}`]),
    `  kind          ${facts.kind}, ${facts.architecture}`,
    ...(facts.kind === 'cross-encoder'
      ? [`  max tokens    ${maxTokens.passage} a pair`]
      : [
          `  dimension     ${facts.dimension}, ${facts.similarity}`,
          `  pooling       ${facts.pooling}${facts.normalize ? ', normalised' : ', not normalised'}${origin}`,
          `  prefixes      query ${JSON.stringify(prefixes.query)}, passage ${JSON.stringify(prefixes.passage)}`,
          `  max tokens    query ${maxTokens.query}, passage ${maxTokens.passage}`,
        ]),
    `  precisions    ${facts.precisions.join(', ')}${engine}`,
    `  size          ${formatBytes(facts.bytes)}`,
  ].join('\n');
}

const ORIGINS: Readonly<Record<PoolingOrigin, string>> = {
  checkpoint: '',
  option: ' (stated with --pooling)',
  name: " (by the model's name)",
  assumed: ' (assumed: the checkpoint states none)',
};
