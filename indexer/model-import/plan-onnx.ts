import { existsSync } from 'node:fs';
import { copyFile, mkdir, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, sep } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import { type OnnxFacts, readOnnxFacts } from '../../src/encoder/model/onnx-facts.ts';
import {
  otherPooling,
  readTransformersFacts,
  type StatedPooling,
} from '../../src/encoder/model/transformers-folder.ts';
import { crossEncoderFacts, encoderRemarks } from './checkpoint-facts.ts';
import { isClassifier, refusePoolingOfPairs } from './checkpoint-kind.ts';
import { isTrunkOfLateInteraction } from './late-interaction.ts';
import { refuseOtherKind } from './model-kind.ts';
import type { ModelPlan } from './model-plan.ts';
import { GRAPH_FILES } from './plan-checkpoint.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';
import { refuseSparseEncoder } from './sparse-encoder.ts';
import { yesNoReranker } from './yes-no-reranker.ts';

const CANDIDATES = ['model.onnx', join('onnx', 'model.onnx')];
const TOKEN_OUTPUTS = ['last_hidden_state', 'token_embeddings'];
const INPUTS = ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids'];
/** Inputs of exported decoders, which Trawl leaves empty. */
const PAST_INPUT = /^past_key_values\.\d+\.(key|value)$/;

/** Path of the exported ONNX graph in a folder, or null. */
export function findOnnx(folder: string): string | null {
  return CANDIDATES.map((path) => join(folder, path)).find((path) => existsSync(path)) ?? null;
}

/**
 * What the config files alone say of a model whose graph is to be copied.
 *
 * @throws TrawlError MODEL_INVALID for a model that gives no vectors of texts, and CONFIG_INVALID for a pooling other than the one that
 * the folder states.
 */
export async function checkGraphConfigs(
  folder: string,
  names: readonly string[],
  raw: JsonObject,
  pooling: StatedPooling | undefined,
): Promise<void> {
  await refuseSparseEncoder(folder, names, raw, pooling);
  if (isClassifier(raw)) return;
  await refuseOtherKind(folder, names, raw, pooling);
  const trunkAlone = await isTrunkOfLateInteraction(folder, raw, pooling);
  if (pooling !== undefined) await knownFacts(folder, names, { trunkAlone, pooling });
}

/**
 * Plans the import of an exported ONNX graph, which is copied unchanged. `names` are other names of the model, which help to
 * recognise its family. Throws MODEL_INVALID, and CONFIG_INVALID for a precision other than the graph's and a pooling other
 * than the folder's or the graph's.
 */
export async function planOnnx(
  folder: string,
  graphPath: string,
  names: readonly string[],
  {
    precisions,
    pooling,
  }: { readonly precisions: readonly Precision[] | undefined; readonly pooling: StatedPooling | undefined },
): Promise<ModelPlan> {
  const raw = await readJsonFile(join(folder, 'config.json'));
  const graph = await readOnnxFacts(graphPath);
  if (yesNoReranker(folder, names, raw) !== null) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${graphPath} is an exported graph of Qwen3-Reranker. Trawl makes its own graph of this model: add model.safetensors to the folder.`,
    );
  }
  await checkGraphConfigs(folder, names, raw, pooling);
  const unknown = graph.inputs.find((input) => !INPUTS.includes(input) && !PAST_INPUT.test(input));
  if (unknown !== undefined || !graph.inputs.includes('input_ids')) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${graphPath} has the inputs ${graph.inputs.join(', ')}. An encoder has input_ids and optionally ` +
        `${INPUTS.slice(1).join(', ')}, a decoder also past_key_values; this may be an encoder-decoder, which is not supported.`,
    );
  }
  const { precision } = graph;
  const other = precisions?.find((wanted) => wanted !== precision);
  if (other !== undefined) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${graphPath} has the precision ${precision}. ${other} can only be made from safetensors. Ask for ${precision}, or add ` +
        'model.safetensors to the folder.',
    );
  }
  const externalData = graph.externalData.map((path) => checkedPath(graphPath, path));
  const dataPaths = externalData.map((path) => join(dirname(graphPath), path));
  for (const path of dataPaths) {
    if (!existsSync(path)) {
      throw new TrawlError('MODEL_INVALID', `${path} is missing: ${graphPath} refers to weights in it. Fetch it too.`);
    }
  }
  const isCrossEncoder = isClassifier(raw) && graph.outputs.includes('logits');
  if (isCrossEncoder) refusePoolingOfPairs(join(folder, 'config.json'), pooling);
  const trunkAlone = !isClassifier(raw) && (await isTrunkOfLateInteraction(folder, raw, pooling));
  const about = isCrossEncoder
    ? await crossEncoderFacts(
        folder,
        raw,
        { modelType: String(raw.model_type ?? 'unknown') },
        labelsOf(raw),
        join(folder, 'config.json'),
      )
    : await encoderFacts(folder, names, { graphPath, graph, trunkAlone, pooling });
  const vocabularySize = Number.isSafeInteger(raw.vocab_size) ? (raw.vocab_size as number) : null;
  return {
    kind: isCrossEncoder ? 'cross-encoder' : 'encoder',
    pairTemplate: null,
    ...about,
    remarks: isCrossEncoder ? [] : encoderRemarks(about, raw, trunkAlone),
    graphs: [{ precision, output: isCrossEncoder ? 'logits' : outputOf(graphPath, graph), write }],
    writeTokenizer: await readSourceTokenizer(folder, vocabularySize),
    weightFiles: [graphPath, ...dataPaths],
    close: async () => {},
  };

  async function write(target: string, options: Parameters<ModelPlan['graphs'][number]['write']>[1]) {
    const path = GRAPH_FILES[precision];
    const copies = [{ from: graphPath, to: path }, ...externalData.map((to, i) => ({ from: dataPaths[i]!, to }))];
    const sizes = await Promise.all(copies.map(async ({ from }) => (await stat(from)).size));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    let done = 0;
    for (const [i, { from, to }] of copies.entries()) {
      await mkdir(dirname(join(target, to)), { recursive: true });
      await copyFile(from, join(target, to));
      done += sizes[i]!;
      options.onProgress?.(done, total);
    }
    return { path, externalData };
  }
}

async function encoderFacts(
  folder: string,
  names: readonly string[],
  { graphPath, graph, ...stated }: { graphPath: string; graph: OnnxFacts } & StatedFacts,
) {
  const { identity, maxPositions, poolingFrom } = await knownFacts(folder, names, stated);
  const common = { maxPositions, labels: null, activation: null };
  if (outputOf(graphPath, graph) !== 'sentence_embedding') return { facts: identity, poolingFrom, ...common };
  if (stated.pooling !== undefined) {
    throw otherPooling(stated.pooling, `${graphPath} pools by itself: its output is sentence_embedding`);
  }
  return { facts: { ...identity, pooling: 'none' } as const, poolingFrom: 'checkpoint' as const, ...common };
}

interface StatedFacts {
  readonly trunkAlone: boolean;
  readonly pooling: StatedPooling | undefined;
}

function knownFacts(folder: string, names: readonly string[], { trunkAlone, pooling }: StatedFacts) {
  return readTransformersFacts(folder, names, { modules: trunkAlone ? 'ignored' : 'known', pooling });
}

/** Prefers an output with token vectors, so that the pooling can be chosen, to one with pooled vectors. */
function outputOf(path: string, { outputs }: OnnxFacts): string {
  const known = [...TOKEN_OUTPUTS, 'sentence_embedding'];
  const found = known.find((name) => outputs.includes(name));
  if (found !== undefined) return found;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the outputs ${outputs.join(', ')}. Expected one of ${known.join(', ')}. Export the model for feature ` +
      'extraction.',
  );
}

function labelsOf(config: Readonly<Record<string, unknown>>): number {
  const { id2label, num_labels: count } = config;
  if (typeof id2label === 'object' && id2label !== null) return Object.keys(id2label).length;
  return Number.isSafeInteger(count) ? (count as number) : 2;
}

function checkedPath(graphPath: string, path: string): string {
  if (!isAbsolute(path) && normalize(path).split(sep)[0] !== '..') return normalize(path);
  throw new TrawlError('MODEL_INVALID', `${graphPath} refers to weights in "${path}", which is outside its folder.`);
}
