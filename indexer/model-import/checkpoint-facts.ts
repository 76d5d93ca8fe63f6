import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { invalidModel, type JsonObject } from '../../src/encoder/model/json-file.ts';
import {
  otherPooling,
  positionsOf,
  readMaxTokens,
  readTransformersFacts,
} from '../../src/encoder/model/transformers-folder.ts';
import type { ScoreActivation } from '../../src/encoder/model/trawl-model-file.ts';
import { className, type ImportSource } from './import-source.ts';
import { assumedPoolingRemark, classesOf, hasPoolingConfig, isClassifier } from './model-kind.ts';
import type { ModelPlan } from './model-plan.ts';

/** Token limit of a pair of texts, even if the cross-encoder has more positions. Other rerankers use the same limit. */
const MAX_PAIR_TOKENS = 512;
/** The same for a reranker that reads a chat, whose prompt takes about 90 tokens, and whose passages may be longer. */
const MAX_CHAT_TOKENS = 1_024;

export interface EncoderFacts extends Pick<ModelPlan, 'facts' | 'maxPositions' | 'poolingFrom'> {
  /** Whether it is the encoder under the head of a late-interaction model. */
  readonly isTrunk: boolean;
}

/**
 * Facts of an encoder whose graphs the import makes. Its Dense modules become part of the graphs. Throws MODEL_INVALID; CONFIG_INVALID for
 * a stated pooling other than the folder's.
 */
export async function encoderFacts(source: ImportSource): Promise<EncoderFacts> {
  const found = await readEncoderFacts(source, 'with Dense');
  if (source.config.model_type !== 'dpr') return found;
  const { folder, pooling } = source;
  if (pooling !== undefined && pooling !== 'cls') throw otherPooling(pooling, `the pooling of DPR (${folder}) is cls`);
  // DPR compares the vectors of the CLS tokens unnormalised. DPR's `pooler_output` is that vector, not a pooler's.
  const facts = { ...found.facts, pooling: 'cls', normalize: false, similarity: 'inner-product' } as const;
  return { ...found, facts, poolingFrom: 'checkpoint' };
}

/** Facts of an encoder whose graph is copied. Errors as of `encoderFacts`. */
export function graphEncoderFacts(source: ImportSource): Promise<EncoderFacts> {
  return readEncoderFacts(source, 'known');
}

async function readEncoderFacts(source: ImportSource, modules: 'known' | 'with Dense'): Promise<EncoderFacts> {
  const { folder, names, pooling } = source;
  const isTrunk = !isClassifier(source.config) && isTrunkOfLateInteraction(source);
  const { identity, ...others } = await readTransformersFacts(folder, names, {
    modules: isTrunk ? 'ignored' : modules,
    pooling,
  });
  return { facts: identity, ...others, isTrunk };
}

export function poolingRemarks({ facts, poolingFrom, isTrunk }: EncoderFacts, { config }: ImportSource): string[] {
  if (isTrunk) return [TRUNK_REMARK];
  return poolingFrom === 'assumed' ? [assumedPoolingRemark(facts.pooling, config)] : [];
}

/** Facts of a cross-encoder; `dimension` is its labels. `readsChat`: it scores every token of a chat, and the last score is the pair's. */
export async function crossEncoderFacts(
  { folder, transformer, config, configPath }: ImportSource,
  labels: number,
  readsChat = false,
): Promise<Pick<ModelPlan, 'facts' | 'maxPositions' | 'labels' | 'activation'>> {
  if (labels !== 1) {
    throw invalidModel(
      `${configPath}: the model has ${labels} labels. A cross-encoder has one, the score; a classifier with ${labels} classes ` +
        'cannot rank passages. A reranker would fit, for example BAAI/bge-reranker-base, or an encoder, for example intfloat/e5-base-v2.',
      { details: { labels } },
    );
  }
  const maxPositions = positionsOf(config);
  const limit = Math.min(readsChat ? MAX_CHAT_TOKENS : MAX_PAIR_TOKENS, await readMaxTokens(transformer, maxPositions));
  return {
    facts: {
      name: basename(folder),
      architecture: String(config.model_type ?? 'unknown'),
      dimension: labels,
      pooling: readsChat ? 'last' : 'none',
      normalize: false,
      similarity: 'inner-product',
      prefixes: { query: '', passage: '' },
      maxTokens: { query: limit, passage: limit },
      precision: 'float32',
      // In every precision, int8 included: the pool runs texts alone whose bits depend on their batch.
      batchInvariant: true,
    },
    maxPositions,
    labels,
    activation: scoreActivation(config, configPath),
  };
}

/** As sentence-transformers does for one label: the activation in the config, or sigmoid if the config has none. */
function scoreActivation(config: JsonObject, path: string): ScoreActivation {
  const own = config.sentence_transformers as { readonly activation_fn?: unknown } | null;
  const named = own?.activation_fn ?? config.sbert_ce_default_activation_function ?? 'Sigmoid';
  const known: Readonly<Record<string, ScoreActivation>> = { Sigmoid: 'sigmoid', Identity: 'identity' };
  const activation = known[String(named).split('.').at(-1)!];
  if (activation !== undefined) return activation;
  throw invalidModel(`${path}: the score activation is ${JSON.stringify(named)}; it must be Sigmoid or Identity.`);
}

/**
 * Whether only the encoder under the head of a late-interaction model (ColBERT) is to be imported: the folder is of such a model, and it or
 * the user states a pooling. The head gives every token a vector, and Trawl compares one vector a text. Throws MODEL_INVALID for a
 * late-interaction model that states no pooling.
 */
function isTrunkOfLateInteraction(source: ImportSource): boolean {
  const sign = signOfLateInteraction(source);
  if (sign === undefined) return false;
  if (source.pooling !== undefined || hasPoolingConfig(source.folder)) return true;
  throw invalidModel(
    `${source.folder} is a late-interaction model (ColBERT): ${sign}. It gives every token of a text a vector, and Trawl compares one vector a ` +
      'text. An encoder would fit, for example Alibaba-NLP/gte-modernbert-base or intfloat/e5-base-v2. To import only the encoder under ' +
      'the head, whose vectors are trained for tokens, state how they become one vector: trawl model add SOURCE --pooling mean.',
  );
}

/** What the user should know of such an encoder. */
const TRUNK_REMARK =
  'only the encoder under the head of the late-interaction model was imported, without the head and the added tokens of its prefixes; ' +
  'its vectors were trained for tokens, so measure their recall first';

/** What says that a folder is of a late-interaction model; undefined if nothing does. */
function signOfLateInteraction({ folder, config, modules, sentenceTransformers }: ImportSource): string | undefined {
  const names = modules.map(className);
  // PyLate's Dense comes after each token, sentence-transformers' Dense after the pooling.
  const own = modules.find((type) => type.startsWith('pylate.') || type.endsWith('.MultiVectorMask'));
  if (own !== undefined) return `modules.json has the module ${own}`;
  if (names.includes('Dense') && !names.includes('Pooling')) return 'modules.json has a Dense module and no Pooling';
  const similarity = sentenceTransformers.similarity_fn_name;
  if (/^maxsim$/i.test(String(similarity))) return `its similarity is ${JSON.stringify(similarity)}`;
  const colbert = classesOf(config).find((name) => /colbert/i.test(name));
  if (colbert !== undefined) return `config.json has the class ${colbert}`;
  return existsSync(join(folder, 'artifact.metadata')) ? 'it has the file artifact.metadata' : undefined;
}
