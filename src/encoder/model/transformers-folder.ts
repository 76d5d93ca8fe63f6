import { existsSync } from 'node:fs';
import { basename, join, normalize } from 'node:path';
import type { TrawlError } from '../../base/errors.ts';
import type { FolderModelIdentity, Pooling } from '../identity/model-identity.ts';
import { cachedRepository } from './hub-cache.ts';
import {
  invalidConfig,
  invalidModel,
  type JsonObject,
  leadsOutside,
  readJsonFile,
  readJsonFileIfPresent,
  readJsonIfPresent,
} from './json-file.ts';
import { knownFamily, type ModelFamily } from './model-families.ts';
import { readOnnxFacts } from './onnx-facts.ts';
import {
  readStatedMaxTokens,
  refuseOtherVectors,
  statedMetric,
  statedPrefixes,
  withTokenizerSettings,
} from './sentence-settings.ts';
import type { PoolingOrigin } from './trawl-model-file.ts';

/** Poolings that a checkpoint states, and that an import takes for a checkpoint that states none. */
export const STATED_POOLINGS = ['mean', 'cls', 'last'] as const satisfies readonly Pooling[];
export type StatedPooling = (typeof STATED_POOLINGS)[number];

/** The facts in the config files of a sentence-transformers or Transformers folder, for weights of any format. */
interface TransformersFacts {
  readonly identity: Omit<FolderModelIdentity, 'sha256'>;
  /** Maximum number of tokens: the rows of the position table. Absent if not stated. */
  readonly maxPositions?: number;
  readonly poolingFrom: PoolingOrigin;
}

/** A folder with an ONNX graph. */
interface TransformersFolder extends Omit<TransformersFacts, 'poolingFrom'> {
  readonly graphPath: string;
  readonly tokenizerPath: string;
}

/** Paths that exporters use, float32 first: a quantised graph is used only if it is the only one. */
const GRAPH_NAMES = ['model.onnx', 'onnx/model.onnx', 'model_quantized.onnx', 'onnx/model_quantized.onnx'];

/** Limits for checkpoints that allow more: for queries the limit of other retrieval servers, for passages BERT's positions. */
const MAX_QUERY_TOKENS = 256;
const MAX_PASSAGE_TOKENS = 512;

/** Reads the config files of a folder with an ONNX graph, which precede the defaults of the model's family. Throws MODEL_INVALID. */
export async function readTransformersFolder(folder: string): Promise<TransformersFolder> {
  const graphPath = findGraph(folder);
  const tokenizerPath = join(folder, 'tokenizer.json');
  if (!existsSync(tokenizerPath)) {
    throw invalidModel(
      `${tokenizerPath} is missing. Save the model's fast tokenizer there (AutoTokenizer….save_pretrained writes it).`,
    );
  }
  const tokenizer = await readJsonFile(tokenizerPath);
  if ((await withTokenizerSettings(folder, tokenizer)) !== tokenizer) {
    throw invalidModel(
      `The config files of ${folder} change its tokenizer.json. Import the folder, which writes one with their settings: trawl model add ${folder}`,
    );
  }
  const { identity, maxPositions } = await readTransformersFacts(folder);
  // onnxruntime reports an unreadable graph in more detail when it loads the graph later.
  const graph = await readOnnxFacts(graphPath).catch(() => undefined);
  if (graph === undefined) return { identity, maxPositions, graphPath, tokenizerPath };
  // Precision and pooling of the graph itself take precedence over the config files.
  const { outputs, precision } = graph;
  const isPooled = outputs.length === 1 && outputs[0] === 'sentence_embedding';
  const pooling = isPooled ? 'none' : identity.pooling;
  return { identity: { ...identity, precision, pooling }, maxPositions, graphPath, tokenizerPath };
}

interface FactsOptions {
  /** Dense modules are refused (`known`), added to the graph by the caller (`with Dense`), or left out (`ignored`). */
  readonly modules?: 'known' | 'with Dense' | 'ignored';
  /** What the user states for a folder that states none; CONFIG_INVALID if the folder states another one. */
  readonly pooling?: StatedPooling;
}

/** The folder of the model's config, weights and tokenizer: the model's own, or the one that modules.json names (`0_Transformer`). */
export async function transformerFolder(folder: string): Promise<string> {
  const path = join(folder, 'modules.json');
  const modules = await readJsonIfPresent(path);
  return join(folder, Array.isArray(modules) ? (modulePath(path, modules, 'Transformer') ?? '') : '');
}

/** Like `readTransformersFolder`, without graph and tokenizer. `names`: names of the model to look up before the folder's. */
export async function readTransformersFacts(
  folder: string,
  names: readonly string[] = [],
  { modules: use = 'known', pooling: given }: FactsOptions = {},
): Promise<TransformersFacts> {
  const transformer = await transformerFolder(folder);
  const config = await readJsonFile(join(transformer, 'config.json'));
  const own = cachedRepository(folder)?.id ?? basename(folder);
  const family = knownFamily([...names, own, String(config._name_or_path ?? '')]);
  const modules = use === 'ignored' ? null : await readModules(folder, use === 'with Dense');
  const sentencePath = join(folder, 'config_sentence_transformers.json');
  const sentence = (await readJsonFileIfPresent(sentencePath)) ?? {};
  const maxPositions = positionsOf(config);
  const maxTokens = await readMaxTokens(transformer, maxPositions);
  const normalizes = family?.normalize === true || modules === null || modules.names.includes('Normalize');
  const { pooling, poolingFrom, stated } = await readPooling(folder, modules, family, given);
  const prefixes = statedPrefixes(sentencePath, sentence) ?? family?.prefixes ?? { query: '', passage: '' };
  refuseOtherVectors(sentencePath, sentence, stated, prefixes);
  return {
    identity: {
      name: basename(folder),
      architecture: typeof config.model_type === 'string' ? config.model_type : 'unknown',
      dimension: readDimension(transformer, config),
      pooling,
      normalize: normalizes,
      // A late-interaction model compares tokens.
      similarity: use === 'ignored' ? 'inner-product' : statedMetric(sentencePath, sentence, normalizes),
      prefixes,
      maxTokens: {
        query: Math.min(MAX_QUERY_TOKENS, maxTokens),
        passage: Math.min(MAX_PASSAGE_TOKENS, maxTokens),
      },
      precision: 'float32',
      batchInvariant: true,
      beforeTruncation: family?.beforeTruncation,
    },
    maxPositions,
    poolingFrom,
  };
}

/** The error of a pooling that the user states, where the model has another one. `where` says which one, and where from. */
export function otherPooling(given: StatedPooling, where: string): TrawlError {
  return invalidConfig(
    `--pooling is ${given}, but ${where}. Leave out --pooling; to compare another pooling, pass --pooling to trawl index, which ` +
      'records it as changed.',
    { details: { given } },
  );
}

function findGraph(folder: string): string {
  const candidates = GRAPH_NAMES.map((name) => join(folder, name));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw invalidModel(
    `${folder} has no ONNX graph: looked for ${candidates.join(', ')}. ` +
      `Import a safetensors checkpoint with \`trawl model add ${folder}\`, or export a graph into the folder, for example with ` +
      'optimum-cli export onnx --task feature-extraction.',
  );
}

function readDimension(folder: string, config: JsonObject): number {
  // T5 and the configs with GPT-2's names have names of their own.
  const dimension = config.hidden_size ?? config.dim ?? config.d_model ?? config.n_embd;
  if (Number.isSafeInteger(dimension) && (dimension as number) > 0) return dimension as number;
  throw invalidModel(`${join(folder, 'config.json')} has no hidden_size. Check that it is the config of an encoder.`);
}

interface Modules {
  readonly names: readonly string[];
  /** Relative folder of the Pooling module's config; undefined if modules.json does not name one. */
  readonly pooling?: string;
}

/** The sentence-transformers modules; null for a plain Transformers folder. */
async function readModules(folder: string, addsDense: boolean): Promise<Modules | null> {
  const path = join(folder, 'modules.json');
  const modules = await readJsonIfPresent(path);
  if (modules === undefined) return null;
  if (!Array.isArray(modules)) throw invalidModel(`${path} is not a list of modules.`);
  const names = modules.map(classOf);
  const supported = ['Transformer', 'Pooling', ...(addsDense ? ['Dense'] : []), 'Normalize'];
  const unsupported = names.find((name) => !supported.includes(name));
  if (unsupported !== undefined) {
    const advice =
      unsupported === 'Dense' ? 'From safetensors, `trawl model add` makes it part of the graph. Or export' : 'Export';
    throw invalidModel(
      `${path} has a module ${unsupported}. Expected one of ${supported.join(', ')}. ` +
        `${advice} the whole pipeline to ONNX with one vector per text as output and describe it in trawl-model.json.`,
    );
  }
  if (!/^Transformer(,Pooling)?(,Dense)*(,Normalize)*$/.test(names.join())) {
    throw invalidModel(
      `${path} has the modules ${names.join(', ')}. Expected them in the order ${supported.join(', ')}, and one Pooling: Trawl ` +
        'normalises vectors last.',
    );
  }
  return { names, pooling: modulePath(path, modules, 'Pooling') };
}

/** The relative folder of a module; undefined if modules.json, whose content is given, does not name one. */
function modulePath(path: string, modules: readonly unknown[], name: string): string | undefined {
  const found = (modules as { type?: unknown; path?: unknown }[]).find((module) => classOf(module) === name);
  if (found?.path === undefined) return undefined;
  const inner = normalize(String(found.path));
  if (!leadsOutside(inner)) return inner;
  throw invalidModel(`${path}: the path of the ${name} module must be inside the folder.`);
}

function classOf(module: { readonly type?: unknown } | null): string {
  return String(module?.type).split('.').at(-1)!;
}

async function readPooling(
  folder: string,
  modules: Modules | null,
  family: ModelFamily | null,
  given: StatedPooling | undefined,
): Promise<{
  readonly pooling: Pooling;
  readonly poolingFrom: PoolingOrigin;
  readonly stated?: { readonly path: string; readonly config: JsonObject };
}> {
  const path = join(folder, modules?.pooling ?? '1_Pooling', 'config.json');
  const config = await readJsonFileIfPresent(path);
  if (config === null) {
    if (modules?.pooling !== undefined) {
      throw invalidModel(
        `${path} is missing, but modules.json names a Pooling module there. Download the model again with that folder.`,
      );
    }
    if (given !== undefined) return { pooling: given, poolingFrom: 'option' };
    return family === null
      ? { pooling: 'mean', poolingFrom: 'assumed' }
      : { pooling: family.pooling, poolingFrom: 'name' };
  }
  const named: Readonly<Record<string, Pooling>> = { mean: 'mean', cls: 'cls', lasttoken: 'last' };
  // Recent versions of sentence-transformers write the name of the mode, earlier versions a flag per mode.
  const modes =
    config.pooling_mode != null
      ? [config.pooling_mode].flat().map(String)
      : Object.keys(config)
          .filter((key) => key.startsWith('pooling_mode_') && config[key] === true)
          .map((key) => key.slice('pooling_mode_'.length).replace(/_tokens?$/, ''));
  const pooling = modes.length === 1 ? named[modes[0]!] : undefined;
  if (pooling === undefined) {
    throw invalidModel(
      `${path} has the pooling ${modes.join(' + ') || '(none)'}. Expected one of ${Object.keys(named).join(', ')}.`,
    );
  }
  if (given !== undefined && given !== pooling) throw otherPooling(given, `${path} states the pooling ${pooling}`);
  return { pooling, poolingFrom: 'checkpoint', stated: { path, config } };
}

/** The token limit that the folder's files state, at most the number of positions. */
export async function readMaxTokens(folder: string, maxPositions = Number.POSITIVE_INFINITY): Promise<number> {
  return Math.min((await readStatedMaxTokens(folder)) ?? MAX_PASSAGE_TOKENS, maxPositions);
}

/** Maximum number of tokens according to the config's position table, or on which the model was trained; undefined if not stated. */
export function positionsOf(config: JsonObject): number | undefined {
  // `max_trained_positions`: nomic's rotary positions go further only with a scaling.
  const positions = config.max_position_embeddings ?? config.max_trained_positions ?? config.n_positions;
  if (!Number.isSafeInteger(positions) || (positions as number) < 4) return undefined;
  // The RoBERTa family numbers positions from the padding token's position + 1.
  const offset = /roberta/.test(String(config.model_type)) ? Number(config.pad_token_id ?? 1) + 1 : 0;
  return (positions as number) - offset;
}
