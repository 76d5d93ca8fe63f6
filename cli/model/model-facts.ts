import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes } from '../../src/base/format.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import {
  type ModelKind,
  type PoolingOrigin,
  readTrawlModelFile,
  TRAWL_MODEL_FILE,
} from '../../src/encoder/model/trawl-model-file.ts';

/** A model folder as `trawl model show` reports it. */
export interface ModelFacts {
  readonly name: string;
  /** Absolute path. */
  readonly folder: string;
  readonly kind: ModelKind;
  readonly architecture: string;
  readonly dimension: number;
  readonly pooling: ModelIdentity['pooling'];
  /** Where `trawl model add` had the pooling from; null if its description does not say. */
  readonly poolingFrom: PoolingOrigin | null;
  readonly normalize: boolean;
  readonly similarity: ModelIdentity['similarity'];
  readonly prefixes: { readonly query: string; readonly passage: string };
  readonly maxTokens: { readonly query: number; readonly passage: number };
  /** The default precision first. */
  readonly precisions: readonly string[];
  /** Those that the engine runs; onnxruntime runs the others. */
  readonly enginePrecisions: readonly string[];
  /** Bytes of all files. */
  readonly bytes: number;
  /** The source that `trawl model add` read; null for a folder that it did not make. */
  readonly source: { readonly kind: string; readonly id: string; readonly revision?: string } | null;
}

/** The facts about a model folder. */
export async function factsOf(folder: string): Promise<ModelFacts> {
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
    poolingFrom: described?.poolingFrom ?? null,
    normalize,
    similarity,
    prefixes,
    maxTokens,
    precisions: model.precisions,
    enginePrecisions: model.enginePrecisions,
    bytes: files.reduce((sum, path) => sum + statSync(path).size, 0),
    source: described === undefined ? null : sourceOf(described),
  };
}

/** Reads the source that `trawl model add` wrote into a description; null for any other value, such as a text. */
export function sourceOf(described: object): ModelFacts['source'] {
  const { source: value } = described as { readonly source?: unknown };
  const source = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const { kind, id, revision } = source;
  if ((kind !== 'hub' && kind !== 'folder') || typeof id !== 'string') return null;
  return { kind, id, ...(typeof revision === 'string' ? { revision } : {}) };
}

export function factsText(facts: ModelFacts): string {
  const { source, prefixes, maxTokens } = facts;
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
          `  pooling       ${facts.pooling}${facts.normalize ? ', normalised' : ', not normalised'}${originText(facts)}`,
          `  prefixes      query ${JSON.stringify(prefixes.query)}, passage ${JSON.stringify(prefixes.passage)}`,
          `  max tokens    query ${maxTokens.query}, passage ${maxTokens.passage}`,
        ]),
    `  precisions    ${facts.precisions.join(', ')}${engineText(facts)}`,
    `  size          ${formatBytes(facts.bytes)}`,
  ].join('\n');
}

function originText({ poolingFrom }: ModelFacts): string {
  const texts: Readonly<Record<PoolingOrigin, string>> = {
    checkpoint: '',
    option: ' (stated with --pooling)',
    name: " (by the model's name)",
    assumed: ' (assumed: the checkpoint states none)',
  };
  return poolingFrom === null ? '' : texts[poolingFrom];
}

function engineText({ enginePrecisions }: ModelFacts): string {
  return enginePrecisions.length === 0 ? '' : ` (${enginePrecisions.join(' and ')}: by the engine)`;
}
