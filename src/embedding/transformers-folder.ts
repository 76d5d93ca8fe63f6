import { existsSync } from 'node:fs';
import { basename, isAbsolute, join, normalize, sep } from 'node:path';
import { TrawlError } from '../errors.ts';
import type { ModelIdentity, Pooling } from '../manifest/model-identity.ts';
import type { Metric } from '../metric.ts';
import { type JsonObject, readJsonFile, readJsonFileIfPresent, readJsonIfPresent } from './json-file.ts';
import { knownFamily, type ModelFamily } from './model-families.ts';
import { type OnnxFacts, readOnnxFacts } from './onnx-facts.ts';

/** What a sentence-transformers or Transformers folder with an ONNX graph says of itself. */
export interface TransformersFolder {
  readonly identity: Omit<ModelIdentity, 'sha256'>;
  readonly graphPath: string;
  readonly tokenizerPath: string;
  /** Most tokens that the model's position table has room for; null where it says nothing. */
  readonly maxPositions: number | null;
}

/** Where exporters put their graphs: the float32 one first, for models of which only a quantised one was kept the others. */
const GRAPH_NAMES = ['model.onnx', 'onnx/model.onnx', 'model_quantized.onnx', 'onnx/model_quantized.onnx'];

/** Limits that hold where a checkpoint allows more: the peers' for queries, BERT's positions for passages. */
const MAX_QUERY_TOKENS = 256;
const MAX_PASSAGE_TOKENS = 512;

/** What the config files say, whatever the weights are kept in. */
export type TransformersFacts = Pick<TransformersFolder, 'identity' | 'maxPositions'>;

/**
 * Reads the config files of a folder with an ONNX graph. What a file says goes first, the model's name last
 * (`model-families.ts`). Throws MODEL_INVALID where something is missing, or said that cannot be followed.
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
  // onnxruntime, which loads it later, says more of a graph that cannot be made out.
  const graph = await readOnnxFacts(graphPath).catch(() => null);
  return { identity: graph === null ? identity : ofGraph(identity, graph), maxPositions, graphPath, tokenizerPath };
}

/** What the graph itself says goes before the config files: its precision, and that it has pooled already. */
function ofGraph(
  identity: TransformersFacts['identity'],
  { outputs, precision }: OnnxFacts,
): TransformersFacts['identity'] {
  const isPooled = outputs.length === 1 && outputs[0] === 'sentence_embedding';
  return { ...identity, precision, pooling: isPooled ? 'none' : identity.pooling };
}

/** As `readTransformersFolder`, without graph and tokenizer. `names`: what else the model is called, told first. */
export async function readTransformersFacts(folder: string, names: readonly string[] = []): Promise<TransformersFacts> {
  const config = await readJsonFile(join(folder, 'config.json'));
  const family = knownFamily([...names, basename(folder), String(config._name_or_path ?? '')]);
  const modules = await readModules(folder);
  const maxPositions = positionsOf(config);
  const normalizes = family?.normalize === true || modules === null || modules.kinds.includes('Normalize');
  const maxTokens = await readMaxTokens(folder, maxPositions);

  return {
    identity: {
      name: basename(folder),
      architecture: typeof config.model_type === 'string' ? config.model_type : 'unknown',
      dimension: readDimension(folder, config),
      pooling: await readPooling(folder, modules, family),
      normalize: normalizes,
      similarity: await readSimilarity(folder, normalizes),
      prefixes: await readPrefixes(folder, family),
      maxTokens: {
        query: Math.min(MAX_QUERY_TOKENS, maxTokens),
        passage: Math.min(MAX_PASSAGE_TOKENS, maxTokens),
      },
      precision: 'float32',
      batchInvariant: true,
    },
    maxPositions,
  };
}

function findGraph(folder: string): string {
  const candidates = GRAPH_NAMES.map((name) => join(folder, name));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new TrawlError(
    'MODEL_INVALID',
    `${folder} holds no ONNX graph: looked for ${candidates.join(', ')}. ` +
      `Make a model of a checkpoint in safetensors with \`trawl model add ${folder}\`, or export a graph into it, for ` +
      'example: optimum-cli export onnx --task feature-extraction.',
  );
}

function readDimension(folder: string, config: JsonObject): number {
  const dimension = config.hidden_size ?? config.dim;
  if (Number.isSafeInteger(dimension) && (dimension as number) > 0) return dimension as number;
  throw new TrawlError(
    'MODEL_INVALID',
    `${join(folder, 'config.json')} has no hidden_size: is it an encoder's config?`,
  );
}

interface Modules {
  /** In order. */
  readonly kinds: readonly string[];
  /** Folder of the pooling's config, relative; null where modules.json names none. */
  readonly pooling: string | null;
}

/** The sentence-transformers modules, null for a plain Transformers folder. */
async function readModules(folder: string): Promise<Modules | null> {
  const path = join(folder, 'modules.json');
  const modules = await readJsonIfPresent(path);
  if (modules === undefined) return null;
  if (!Array.isArray(modules)) throw new TrawlError('MODEL_INVALID', `${path} does not hold a list of modules.`);
  const kinds = modules.map((module: { type?: unknown } | null) => String(module?.type).split('.').at(-1)!);
  const unsupported = kinds.find((kind) => !['Transformer', 'Pooling', 'Normalize'].includes(kind));
  if (unsupported !== undefined) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} has a module ${unsupported}; supported are Transformer, Pooling and Normalize. ` +
        'Export the whole pipeline to ONNX with one vector a text as output and describe it in trawl-model.json.',
    );
  }
  const pooling = modules[kinds.indexOf('Pooling')] as { path?: unknown } | undefined;
  if (pooling?.path === undefined) return { kinds, pooling: null };
  const inner = normalize(String(pooling.path));
  if (isAbsolute(inner) || inner.split(sep)[0] === '..') {
    throw new TrawlError('MODEL_INVALID', `${path}: the path of its Pooling module has to lie inside the folder.`);
  }
  return { kinds, pooling: inner };
}

async function readPooling(folder: string, modules: Modules | null, family: ModelFamily | null): Promise<Pooling> {
  const path = join(folder, modules?.pooling ?? '1_Pooling', 'config.json');
  const config = await readJsonFileIfPresent(path);
  if (config === null && typeof modules?.pooling === 'string') {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is missing; modules.json names a Pooling module there. Fetch the model again, that folder included.`,
    );
  }
  if (config === null) return family?.pooling ?? 'mean';
  const named: Readonly<Record<string, Pooling>> = { mean: 'mean', cls: 'cls', lasttoken: 'last' };
  // Later versions of sentence-transformers write one name, earlier ones a flag for each.
  const modes =
    typeof config.pooling_mode === 'string'
      ? [config.pooling_mode]
      : Object.keys(config)
          .filter((key) => key.startsWith('pooling_mode_') && config[key] === true)
          .map((key) => key.slice('pooling_mode_'.length).replace(/_tokens?$/, ''));
  const pooling = modes.length === 1 ? named[modes[0]!] : undefined;
  if (pooling !== undefined) return pooling;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} asks for the pooling ${modes.join(' + ') || '(none)'}; supported are one of ${Object.keys(named).join(', ')}.`,
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
  // Recent versions write empty prompts for every model: those state nothing.
  if (stated.query !== '' || stated.passage !== '') return stated;
  return family?.prefixes ?? { query: '', passage: '' };
}

async function readSimilarity(folder: string, normalizes: boolean): Promise<Metric> {
  const config = await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json'));
  switch (config?.similarity_fn_name) {
    case 'euclidean':
      return 'l2';
    case 'cosine':
      // On unit vectors the two are the same, and the inner product costs less.
      return normalizes ? 'inner-product' : 'cosine';
    default:
      return 'inner-product';
  }
}

/** Most tokens of a text that the folder's files speak of, at most what there are positions for. */
export async function readMaxTokens(folder: string, maxPositions: number | null): Promise<number> {
  const sentence = await readJsonFileIfPresent(join(folder, 'sentence_bert_config.json'));
  const tokenizer = await readJsonFileIfPresent(join(folder, 'tokenizer_config.json'));
  // The first that is stated, as sentence-transformers does; but never more than there are positions.
  const stated = [sentence?.max_seq_length, tokenizer?.model_max_length].find(
    (value) => Number.isSafeInteger(value) && (value as number) > 2,
  );
  return Math.min((stated as number | undefined) ?? MAX_PASSAGE_TOKENS, maxPositions ?? Number.POSITIVE_INFINITY);
}

/** Most tokens that a config's table of positions has room for; null where it says nothing. */
export function positionsOf(config: JsonObject): number | null {
  const positions = config.max_position_embeddings;
  if (!Number.isSafeInteger(positions) || (positions as number) < 4) return null;
  // RoBERTa and its kin count positions from behind the padding's.
  const offset = /roberta/.test(String(config.model_type)) ? Number(config.pad_token_id ?? 1) + 1 : 0;
  return (positions as number) - offset;
}
