import { basename } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/encoder/model/json-file.ts';
import {
  otherPooling,
  positionsOf,
  readMaxTokens,
  readTransformersFacts,
  type StatedPooling,
} from '../../src/encoder/model/transformers-folder.ts';
import type { ScoreActivation } from '../../src/encoder/model/trawl-model-file.ts';
import type { EncoderArchitecture } from './encoder-family.ts';
import { TRUNK_REMARK } from './late-interaction.ts';
import { assumedPoolingRemark } from './model-kind.ts';
import type { ModelPlan } from './model-plan.ts';

/** Token limit of a pair of texts, even if the cross-encoder has more positions. Other rerankers use the same limit. */
const MAX_PAIR_TOKENS = 512;
/** The same for a reranker that reads a chat, whose prompt takes about 90 tokens, and whose passages may be longer. */
const MAX_CHAT_TOKENS = 1_024;

export type CheckpointFacts = Pick<ModelPlan, 'facts' | 'maxPositions' | 'poolingFrom' | 'labels' | 'activation'>;

/** Facts of an encoder of vectors. */
export async function encoderFacts(
  folder: string,
  names: readonly string[],
  { modelType }: EncoderArchitecture,
  { trunkAlone, pooling }: { readonly trunkAlone: boolean; readonly pooling: StatedPooling | undefined },
): Promise<CheckpointFacts> {
  const modules = trunkAlone ? 'ignored' : 'with Dense';
  const { identity, maxPositions, poolingFrom } = await readTransformersFacts(folder, names, { modules, pooling });
  const common = { maxPositions, labels: null, activation: null };
  if (modelType !== 'dpr') return { facts: identity, poolingFrom, ...common };
  if (pooling !== undefined && pooling !== 'cls') throw otherPooling(pooling, `the pooling of DPR (${folder}) is cls`);
  // DPR compares the vectors of the CLS tokens unnormalised. DPR's `pooler_output` is that vector, not a pooler's.
  const facts = { ...identity, pooling: 'cls', normalize: false, similarity: 'inner-product' } as const;
  return { facts, poolingFrom: 'checkpoint', ...common };
}

/** What the user should know of the pooling of an encoder. */
export function encoderRemarks(
  { facts, poolingFrom }: Pick<CheckpointFacts, 'facts' | 'poolingFrom'>,
  raw: JsonObject,
  trunkAlone: boolean,
): readonly string[] {
  if (trunkAlone) return [TRUNK_REMARK];
  return poolingFrom === 'assumed' ? [assumedPoolingRemark(facts.pooling, raw)] : [];
}

/** Facts of a cross-encoder. Its `dimension` is the number of labels. `path` is for error messages. */
export async function crossEncoderFacts(
  folder: string,
  raw: JsonObject,
  config: { readonly modelType: string },
  labels: number,
  path: string,
): Promise<CheckpointFacts> {
  if (labels !== 1) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: the model has ${labels} labels. A cross-encoder has one, the score; a classifier with ${labels} classes ` +
        'cannot rank passages. A reranker would fit, for example BAAI/bge-reranker-base, or an encoder, for example intfloat/e5-base-v2.',
      { details: { labels } },
    );
  }
  const maxPositions = positionsOf(raw);
  const limit = Math.min(MAX_PAIR_TOKENS, await readMaxTokens(folder, maxPositions));
  return {
    facts: {
      name: basename(folder),
      architecture: config.modelType,
      dimension: labels,
      pooling: 'none',
      normalize: false,
      similarity: 'inner-product',
      prefixes: { query: '', passage: '' },
      maxTokens: { query: limit, passage: limit },
      precision: 'float32',
      // In every precision, int8 included: the pool runs texts alone whose bits depend on their batch.
      batchInvariant: true,
    },
    maxPositions,
    poolingFrom: null,
    labels,
    activation: scoreActivation(raw, path),
  };
}

/** Facts of a reranker that reads a chat: its score is that of the last token. */
export async function inTemplate(folder: string, { facts, ...others }: CheckpointFacts): Promise<CheckpointFacts> {
  const limit = Math.min(MAX_CHAT_TOKENS, await readMaxTokens(folder, others.maxPositions));
  return { ...others, facts: { ...facts, pooling: 'last', maxTokens: { query: limit, passage: limit } } };
}

/** As sentence-transformers does for one label: the activation in the config, or sigmoid if the config has none. */
function scoreActivation(config: JsonObject, path: string): ScoreActivation {
  const own = config.sentence_transformers as { readonly activation_fn?: unknown } | null;
  const named = own?.activation_fn ?? config.sbert_ce_default_activation_function;
  if (named === undefined || named === null) return 'sigmoid';
  const known: Readonly<Record<string, ScoreActivation>> = { Sigmoid: 'sigmoid', Identity: 'identity' };
  const activation = known[String(named).split('.').at(-1)!];
  if (activation !== undefined) return activation;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path}: the score activation is ${JSON.stringify(named)}; it must be Sigmoid or Identity.`,
  );
}
