import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import { changedEndpoint } from '../../encoder/endpoint/endpoint-watch.ts';
import { embedProbes, storedProbes } from '../../encoder/endpoint/probes.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity, type Precision } from '../../encoder/identity/model-identity.ts';
import type { ModelOverrides } from '../../encoder/model/model-overrides.ts';
import { type OpenEncoderOptions, openEncoder } from '../../encoder/open-encoder.ts';
import type { EncoderPools } from '../../encoder/pool/encoder-pools.ts';
import type { TextEncoder } from '../../encoder/text-encoder.ts';
import { type IndexManifest, requireVectors } from '../../index/manifest/index-manifest.ts';

export interface IndexEncoderOptions
  extends Pick<
    OpenEncoderOptions,
    'device' | 'shareWeights' | 'trialAtStart' | 'endpoint' | 'answersSince' | 'signal'
  > {
  /**
   * Folder or name of the model, or the URL of an endpoint. Default: the manifest's model location if it exists, else the manifest's
   * model name.
   */
  readonly model?: string;
  /** Default: the manifest's, or the other float precision if the model folder lacks a graph in that precision. */
  readonly precision?: Precision;
  /** Encoder threads, on GPUs of each device. Default: as `RunOptions.workers`. */
  readonly encoderThreads?: number;
  /** Pools that share encoder threads and weights between indexes of the same model. Default: a separate pool. */
  readonly encoderPools?: EncoderPools;
  /**
   * For a URL as `model` and an index of a model folder, which has no probes: embeds passages of the index again and compares them with
   * their vectors. Resolves to the largest relative distance and whether all are near enough. Without it such an index is refused.
   */
  readonly checkStored?: CheckStored;
  /** Called with a warning when answers may differ in the last bits or be slower than possible, or a block list has unknown entries. */
  readonly onWarning?: (warning: string) => void;
}

export type CheckStored = (
  folder: string,
  encoder: TextEncoder,
) => Promise<{ readonly isSame: boolean; readonly passages: number; readonly largestDistance: number | null }>;

/**
 * Opens the encoder of an index. Prefixes, pooling and token limits come from the manifest, and the encoder must have the weights
 * that the index was built with; an endpoint must give the recorded vectors.
 *
 * @param folderOrFolders the index's path as given and, if that is a symbolic link, its target.
 * @throws TrawlError NOT_SUPPORTED for an index without vectors, MODEL_NOT_FOUND, MODEL_INVALID, MODEL_MISMATCH, ENDPOINT_FAILED,
 * DEVICE_UNAVAILABLE or CANCELLED; nothing stays open then.
 */
export async function openIndexEncoder(
  folderOrFolders: string | readonly string[],
  manifest: IndexManifest,
  options: IndexEncoderOptions,
): Promise<TextEncoder> {
  const folders = [folderOrFolders].flat();
  const { model } = requireVectors(folders[0]!, manifest);
  const encoder = await openEncoder(options.model ?? recordedModel(folders, { ...manifest, model }), {
    ...options,
    workers: options.encoderThreads,
    preferredPrecisions: precisionsFor(model, options.device),
    overrides: recordedOverrides(model),
    pools: options.encoderPools,
    recorded: model,
  });
  try {
    const precisionAsked = options.precision !== undefined;
    const remark =
      model.endpoint === undefined && encoder.identity.endpoint === undefined
        ? checkSameModel(model, encoder.identity, { precisionAsked })
        : await untilAborted(checkVectors(folders[0]!, model, encoder, options), options.signal);
    if (remark !== undefined) options.onWarning?.(remark);
    return encoder;
  } catch (error) {
    await encoder.close();
    throw error;
  }
}

/**
 * Compares vectors where a checksum cannot tell: vectors of the probes that the index records, else of its passages.
 *
 * @returns a warning; undefined if nothing differs.
 * @throws TrawlError MODEL_MISMATCH, NOT_SUPPORTED.
 */
async function checkVectors(
  folder: string,
  model: ModelIdentity,
  encoder: TextEncoder,
  { checkStored, endpoint }: IndexEncoderOptions,
): Promise<string | undefined> {
  const error =
    model.endpoint === undefined
      ? await differingPassages(folder, model, encoder, checkStored)
      : changedEndpoint(
          encoder.identity.name,
          // Probes are stored as the endpoint sent them. A model folder is compared with them as the index stores vectors.
          encoder.identity.endpoint === undefined ? storedProbes(model) : model.endpoint.probes,
          encoder.identity.endpoint?.probes ?? (await embedProbes(encoder, model.endpoint.probes)),
        );
  if (error !== undefined && endpoint?.onChange !== 'report') throw error;
  return error?.message;
}

async function differingPassages(
  folder: string,
  model: ModelIdentity,
  encoder: TextEncoder,
  check: CheckStored | undefined,
): Promise<TrawlError | undefined> {
  if (check === undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index of ${model.name} cannot be opened with an endpoint without checkStored, which compares their vectors.`,
    );
  }
  const { isSame, passages, largestDistance } = await check(folder, encoder);
  if (isSame) return undefined;
  return new TrawlError(
    'MODEL_MISMATCH',
    `The index was built with ${model.name}, but the endpoint ${encoder.identity.name} gives its passages other vectors: of ${passages} ` +
      `passages embedded again, the farthest has a relative distance of ${largestDistance?.toFixed(3)} to its vector. Start the endpoint ` +
      'with the model of the index, its pooling and without a prompt of its own, or build the index again.',
    { details: { passages, largestDistance } },
  );
}

/** Precisions in order of preference: the index's own, but float32 instead of float16 on the CPU, where float16 is slow. */
function precisionsFor({ precision }: ModelIdentity, device = 'cpu'): readonly Precision[] {
  if (precision === 'int8' || precision === 'bfloat16') return [precision];
  const own = device === 'cpu' ? 'float32' : precision;
  return own === 'float32' ? ['float32', 'float16'] : ['float16', 'float32'];
}

/** The manifest's model location, resolved against the first of `folders` in which it exists; else the model's name. */
export function recordedModel(
  folders: readonly string[],
  { model, modelLocation }: { readonly model: ModelIdentity; readonly modelLocation?: string },
): string {
  if (model.endpoint !== undefined) {
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      `The index was embedded by ${model.name} behind an endpoint. Name its address with --model http://HOST:PORT, or the model's folder with --model DIR.`,
    );
  }
  if (modelLocation === undefined) return model.name;
  const paths = folders.map((folder) => resolve(folder, modelLocation));
  return paths.find((path) => existsSync(path)) ?? model.name;
}

/**
 * The model settings recorded in the manifest, which override the settings of the model folder. A model folder in place of the recorded
 * endpoint keeps its own pooling and limits, and its prompts if the endpoint added prompts.
 */
export function recordedOverrides(model: ModelIdentity): ModelOverrides {
  const { endpoint, prefixes, maxTokens, fullDimension } = model;
  const requests = { ...endpoint?.requests.query, ...endpoint?.requests.passage };
  return defined<ModelOverrides>({
    queryTemplate: model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    normalize: model.normalize,
    ...(Object.keys(requests).length === 0 && { queryPrefix: prefixes.query, passagePrefix: prefixes.passage }),
    ...(endpoint === undefined && {
      pooling: model.pooling,
      maxQueryTokens: maxTokens.query ?? undefined,
      maxPassageTokens: maxTokens.passage ?? undefined,
    }),
    ...(fullDimension !== undefined && {
      dimension: model.dimension,
      beforeTruncation: model.beforeTruncation ?? null,
    }),
  });
}

/**
 * Refuses an encoder whose vectors would differ from the vectors of the index. The same weights and tokenizer in another precision give
 * nearly equal vectors: float32 and float16 may replace each other, int8 and bfloat16 only if the user chose the precision
 * (`precisionAsked`), and so the two graphs in int8, one for onnxruntime and one for the engine. Returns a warning if only the precision or
 * the graph in int8 differs, and undefined if nothing differs.
 *
 * @throws TrawlError MODEL_MISMATCH with both models and the fields that differ.
 * @internal
 */
export function checkSameModel(
  index: ModelIdentity,
  encoder: ModelIdentity,
  { precisionAsked = false }: { precisionAsked?: boolean } = {},
): string | undefined {
  const differences = differingFields(index, encoder);
  if (differences.length === 0) return undefined;
  const isSameSource = index.sourceSha256 !== undefined && index.sourceSha256 === encoder.sourceSha256;
  const onlyPrecision = differences.every(({ field }) => field === 'sha256' || field === 'precision');
  let wayOut = 'Pass the model of the index with --model, or build the index again with this model.';
  if (isSameSource && onlyPrecision && index.precision === encoder.precision) {
    const isInt8 = index.precision === 'int8';
    if (isInt8 && precisionAsked) {
      return 'The index was embedded in int8 by another graph of the same weights than the one that embeds queries: scores differ slightly.';
    }
    wayOut = `Both have the same weights in ${index.precision}, but not the same graph of them: ${isInt8 ? 'onnxruntime runs one and the engine the other, or ' : ''}they were added by different versions of Trawl. Pass the model of the index with --model, or build the index again${isInt8 ? ', or accept the difference with --precision int8' : ''}.`;
  } else if (isSameSource && onlyPrecision) {
    const isFloat = [index.precision, encoder.precision].every((one) => one === 'float32' || one === 'float16');
    if (isFloat || precisionAsked) {
      return `The index was embedded in ${index.precision}, but queries are embedded in ${encoder.precision}: scores differ slightly. docs/models.md (recall by precision) has the measured agreement.`;
    }
    wayOut = `Both have the same weights: use --precision ${index.precision}, or accept the difference with --precision ${encoder.precision}.`;
  }
  throw new TrawlError(
    'MODEL_MISMATCH',
    `The index was built with ${index.name}, but the query encoder is ${encoder.name}. They differ in ` +
      `${differences.map(({ field, index: a, encoder: b }) => `${field} (index ${a}, encoder ${b})`).join(', ')}. ${wayOut}`,
    { details: { index: index.name, encoder: encoder.name, fields: differences.map(({ field }) => field) } },
  );
}

function differingFields(a: ModelIdentity, b: ModelIdentity) {
  const facts = (model: ModelIdentity): Record<string, unknown> => ({
    sha256: model.sha256.slice(0, 12),
    architecture: model.architecture,
    dimension: model.dimension,
    'full dimension': model.fullDimension ?? null,
    'step before truncation': model.beforeTruncation ?? null,
    pooling: model.pooling,
    normalize: model.normalize,
    precision: model.precision,
    'query prefix': model.prefixes.query,
    'passage prefix': model.prefixes.passage,
    'query template': model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    'query tokens': model.maxTokens.query,
    'passage tokens': model.maxTokens.passage,
  });
  const left = facts(a);
  const right = facts(b);
  return Object.keys(left)
    .filter((field) => left[field] !== right[field])
    .map((field) => ({ field, index: JSON.stringify(left[field]), encoder: JSON.stringify(right[field]) }));
}
