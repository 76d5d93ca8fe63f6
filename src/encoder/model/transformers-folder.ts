import { existsSync } from 'node:fs';
import { basename, isAbsolute, join, normalize, sep } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import type { FolderModelIdentity, ModelIdentity, Pooling } from '../identity/model-identity.ts';
import { cachedRepository } from './hub-cache.ts';
import { type JsonObject, readJsonFile, readJsonFileIfPresent, readJsonIfPresent } from './json-file.ts';
import { knownFamily, type ModelFamily } from './model-families.ts';
import { type OnnxFacts, readOnnxFacts } from './onnx-facts.ts';
import type { PoolingOrigin } from './trawl-model-file.ts';

/** Poolings that a checkpoint states, and that an import takes for a checkpoint that states none. */
export const STATED_POOLINGS = ['mean', 'cls', 'last'] as const satisfies readonly Pooling[];
export type StatedPooling = (typeof STATED_POOLINGS)[number];

/** A sentence-transformers or Transformers folder with an ONNX graph. */
interface TransformersFolder {
  readonly identity: Omit<FolderModelIdentity, 'sha256'>;
  readonly graphPath: string;
  readonly tokenizerPath: string;
  /** Maximum number of tokens: the rows of the position table. Null if not stated. */
  readonly maxPositions: number | null;
}

/** Paths that exporters use, float32 first: a quantised graph is used only if it is the only one. */
const GRAPH_NAMES = ['model.onnx', 'onnx/model.onnx', 'model_quantized.onnx', 'onnx/model_quantized.onnx'];

/** Limits for checkpoints that allow more: for queries the limit of other retrieval servers, for passages BERT's positions. */
const MAX_QUERY_TOKENS = 256;
const MAX_PASSAGE_TOKENS = 512;

/** The facts in the config files, for weights of any format. */
interface TransformersFacts extends Pick<TransformersFolder, 'identity' | 'maxPositions'> {
  readonly poolingFrom: PoolingOrigin;
}

/**
 * Reads the config files of a folder with an ONNX graph. Files take precedence over the defaults of the model's family
 * (`model-families.ts`). Throws MODEL_INVALID if a file is missing or a setting is not supported.
 */
export async function readTransformersFolder(folder: string): Promise<TransformersFolder> {
  const graphPath = findGraph(folder);
  const tokenizerPath = join(folder, 'tokenizer.json');
  if (!existsSync(tokenizerPath)) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${tokenizerPath} is missing. Save the model's fast tokenizer there (AutoTokenizer….save_pretrained writes it).`,
    );
  }
  const { identity, maxPositions } = await readTransformersFacts(folder);
  // onnxruntime reports an unreadable graph in more detail when it loads the graph later.
  const graph = await readOnnxFacts(graphPath).catch(() => null);
  return {
    identity: graph === null ? identity : withGraphFacts(identity, graph),
    maxPositions,
    graphPath,
    tokenizerPath,
  };
}

/** Precision and pooling of the graph itself take precedence over the config files. */
function withGraphFacts(
  identity: TransformersFacts['identity'],
  { outputs, precision }: OnnxFacts,
): TransformersFacts['identity'] {
  const isPooled = outputs.length === 1 && outputs[0] === 'sentence_embedding';
  return { ...identity, precision, pooling: isPooled ? 'none' : identity.pooling };
}

/**
 * Like `readTransformersFolder`, without graph and tokenizer. `names`: names of the model to look up before the folder's. Dense
 * modules of modules.json are refused, unless the caller adds them to the graph (`with Dense`) or takes the encoder alone (`ignored`).
 * `pooling`: what the user states for a folder that states none; CONFIG_INVALID if the folder states another one.
 */
export async function readTransformersFacts(
  folder: string,
  names: readonly string[] = [],
  {
    modules: use = 'known',
    pooling: given,
  }: {
    readonly modules?: 'known' | 'with Dense' | 'ignored';
    readonly pooling?: StatedPooling;
  } = {},
): Promise<TransformersFacts> {
  const config = await readJsonFile(join(folder, 'config.json'));
  const cached = cachedRepository(folder);
  const own = cached === null ? basename(folder) : cached.id;
  const family = knownFamily([...names, own, String(config._name_or_path ?? '')]);
  const modules = use === 'ignored' ? null : await readModules(folder, use === 'with Dense');
  const maxPositions = positionsOf(config);
  const normalizes = family?.normalize === true || modules === null || modules.names.includes('Normalize');
  const maxTokens = await readMaxTokens(folder, maxPositions);
  const { pooling, poolingFrom } = await readPooling(folder, modules, family, given);

  return {
    identity: {
      name: basename(folder),
      architecture: typeof config.model_type === 'string' ? config.model_type : 'unknown',
      dimension: readDimension(folder, config),
      pooling,
      normalize: normalizes,
      similarity: await readSimilarity(folder, normalizes),
      prefixes: await readPrefixes(folder, family),
      maxTokens: {
        query: Math.min(MAX_QUERY_TOKENS, maxTokens),
        passage: Math.min(MAX_PASSAGE_TOKENS, maxTokens),
      },
      precision: 'float32',
      batchInvariant: true,
      beforeTruncation: family?.beforeTruncation === undefined ? undefined : family.beforeTruncation,
    },
    maxPositions,
    poolingFrom,
  };
}

/** The error of a pooling that the user states, where the model has another one. `where` says which one, and where from. */
export function otherPooling(given: StatedPooling, where: string): TrawlError {
  return new TrawlError(
    'CONFIG_INVALID',
    `--pooling is ${given}, but ${where}. Leave out --pooling; to compare another pooling, pass --pooling to trawl index, which ` +
      'records it as changed.',
    { details: { given } },
  );
}

function findGraph(folder: string): string {
  const candidates = GRAPH_NAMES.map((name) => join(folder, name));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new TrawlError(
    'MODEL_INVALID',
    `${folder} has no ONNX graph: looked for ${candidates.join(', ')}. ` +
      `Import a safetensors checkpoint with \`trawl model add ${folder}\`, or export a graph into the folder, for example with ` +
      'optimum-cli export onnx --task feature-extraction.',
  );
}

function readDimension(folder: string, config: JsonObject): number {
  // T5 and the configs with GPT-2's names have names of their own.
  const dimension = config.hidden_size ?? config.dim ?? config.d_model ?? config.n_embd;
  if (Number.isSafeInteger(dimension) && (dimension as number) > 0) return dimension as number;
  throw new TrawlError(
    'MODEL_INVALID',
    `${join(folder, 'config.json')} has no hidden_size. Check that it is the config of an encoder.`,
  );
}

interface Modules {
  /** Class names, in order. */
  readonly names: readonly string[];
  /** Relative folder of the Pooling module's config; null if modules.json does not name one. */
  readonly pooling: string | null;
}

/** The sentence-transformers modules; null for a plain Transformers folder. */
async function readModules(folder: string, addsDense: boolean): Promise<Modules | null> {
  const path = join(folder, 'modules.json');
  const modules = await readJsonIfPresent(path);
  if (modules === undefined) return null;
  if (!Array.isArray(modules)) throw new TrawlError('MODEL_INVALID', `${path} is not a list of modules.`);
  const names = modules.map((module: { type?: unknown } | null) => String(module?.type).split('.').at(-1)!);
  const supported = ['Transformer', 'Pooling', ...(addsDense ? ['Dense'] : []), 'Normalize'];
  const unsupported = names.find((name) => !supported.includes(name));
  if (unsupported !== undefined) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} has a module ${unsupported}. Expected one of ${supported.join(', ')}. ` +
        (unsupported === 'Dense'
          ? 'From safetensors, `trawl model add` makes it part of the graph. Or export'
          : 'Export') +
        ' the whole pipeline to ONNX with one vector per text as output and describe it in trawl-model.json.',
    );
  }
  const pooling = modules[names.indexOf('Pooling')] as { path?: unknown } | undefined;
  if (pooling?.path === undefined) return { names, pooling: null };
  const inner = normalize(String(pooling.path));
  if (isAbsolute(inner) || inner.split(sep)[0] === '..') {
    throw new TrawlError('MODEL_INVALID', `${path}: the path of the Pooling module must be inside the folder.`);
  }
  return { names, pooling: inner };
}

async function readPooling(
  folder: string,
  modules: Modules | null,
  family: ModelFamily | null,
  given: StatedPooling | undefined,
): Promise<{ readonly pooling: Pooling; readonly poolingFrom: PoolingOrigin }> {
  const path = join(folder, modules?.pooling ?? '1_Pooling', 'config.json');
  const config = await readJsonFileIfPresent(path);
  if (config === null && typeof modules?.pooling === 'string') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is missing, but modules.json names a Pooling module there. Download the model again with that folder.`,
    );
  }
  if (config === null) {
    if (given !== undefined) return { pooling: given, poolingFrom: 'option' };
    return family === null
      ? { pooling: 'mean', poolingFrom: 'assumed' }
      : { pooling: family.pooling, poolingFrom: 'name' };
  }
  const named: Readonly<Record<string, Pooling>> = { mean: 'mean', cls: 'cls', lasttoken: 'last' };
  // Recent versions of sentence-transformers write the name of the mode, earlier versions a flag per mode.
  const modes =
    typeof config.pooling_mode === 'string'
      ? [config.pooling_mode]
      : Object.keys(config)
          .filter((key) => key.startsWith('pooling_mode_') && config[key] === true)
          .map((key) => key.slice('pooling_mode_'.length).replace(/_tokens?$/, ''));
  const pooling = modes.length === 1 ? named[modes[0]!] : undefined;
  if (pooling !== undefined) {
    if (given !== undefined && given !== pooling) throw otherPooling(given, `${path} states the pooling ${pooling}`);
    return { pooling, poolingFrom: 'checkpoint' };
  }
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the pooling ${modes.join(' + ') || '(none)'}. Expected one of ${Object.keys(named).join(', ')}.`,
  );
}

async function readPrefixes(folder: string, family: ModelFamily | null): Promise<ModelIdentity['prefixes']> {
  const config = await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json'));
  const prompts = (config?.prompts ?? {}) as Readonly<Record<string, unknown>>;
  const prompt = (...names: string[]) => {
    const name = names.find((candidate) => typeof prompts[candidate] === 'string' && prompts[candidate] !== '');
    return name === undefined ? '' : (prompts[name] as string);
  };
  const stated = { query: prompt('query'), passage: prompt('passage', 'document', 'corpus') };
  // Recent versions write empty prompts for every model, which say nothing about its prefixes.
  if (stated.query !== '' || stated.passage !== '') return stated;
  return family?.prefixes ?? { query: '', passage: '' };
}

async function readSimilarity(folder: string, normalizes: boolean): Promise<Metric> {
  const config = await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json'));
  switch (config?.similarity_fn_name) {
    case 'euclidean':
      return 'l2';
    case 'cosine':
      // On unit vectors both are equal, and the inner product is cheaper.
      return normalizes ? 'inner-product' : 'cosine';
    default:
      return 'inner-product';
  }
}

/** The token limit that the folder's files state, at most the number of positions. */
export async function readMaxTokens(folder: string, maxPositions: number | null): Promise<number> {
  const sentence = await readJsonFileIfPresent(join(folder, 'sentence_bert_config.json'));
  const tokenizer = await readJsonFileIfPresent(join(folder, 'tokenizer_config.json'));
  // sentence-transformers also uses the first limit that is stated.
  const stated = [sentence?.max_seq_length, tokenizer?.model_max_length].find(
    (value) => Number.isSafeInteger(value) && (value as number) > 2,
  );
  return Math.min((stated as number | undefined) ?? MAX_PASSAGE_TOKENS, maxPositions ?? Number.POSITIVE_INFINITY);
}

/** Maximum number of tokens according to the config's position table, or on which the model was trained; null if not stated. */
export function positionsOf(config: JsonObject): number | null {
  // `max_trained_positions`: nomic's rotary positions go further only with a scaling.
  const positions = config.max_position_embeddings ?? config.max_trained_positions ?? config.n_positions;
  if (!Number.isSafeInteger(positions) || (positions as number) < 4) return null;
  // The RoBERTa family numbers positions from the padding token's position + 1.
  const offset = /roberta/.test(String(config.model_type)) ? Number(config.pad_token_id ?? 1) + 1 : 0;
  return (positions as number) - offset;
}
