import { existsSync } from 'node:fs';
import { copyFile, mkdir, stat } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { invalidConfig, invalidModel, type JsonObject, leadsOutside } from '../../src/encoder/model/json-file.ts';
import { type OnnxFacts, readOnnxFacts } from '../../src/encoder/model/onnx-facts.ts';
import { otherPooling } from '../../src/encoder/model/transformers-folder.ts';
import { crossEncoderFacts, type EncoderFacts, graphEncoderFacts, poolingRemarks } from './checkpoint-facts.ts';
import { refusePoolingOfPairs } from './checkpoint-kind.ts';
import type { ImportSource } from './import-source.ts';
import { isClassifier, refuseOtherKind } from './model-kind.ts';
import type { ModelPlan } from './model-plan.ts';
import { GRAPH_FILES } from './plan-checkpoint.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';
import { refuseSparseEncoder } from './sparse-encoder.ts';
import { yesNoTemplate } from './yes-no-reranker.ts';

const CANDIDATES = ['model.onnx', join('onnx', 'model.onnx')];
/** Outputs of an encoder's graph. Token vectors are preferred to pooled vectors, so that the pooling can be chosen. */
const OUTPUTS = ['last_hidden_state', 'token_embeddings', 'sentence_embedding'];
const INPUTS = ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids'];
/** Inputs of exported decoders, which Trawl leaves empty. */
const PAST_INPUT = /^past_key_values\.\d+\.(key|value)$/;

/** Path of the exported ONNX graph in a folder; undefined if there is none. */
export function findOnnx(folder: string): string | undefined {
  return CANDIDATES.map((path) => join(folder, path)).find((path) => existsSync(path));
}

/**
 * Checks what the config files alone say of a model whose graph is to be copied. Throws MODEL_INVALID for a model that gives no vectors of
 * texts, and CONFIG_INVALID for a pooling other than the one that the folder states.
 *
 * @returns the facts of an encoder; undefined for a classifier, whose graph decides.
 */
export async function checkGraphConfigs(source: ImportSource): Promise<EncoderFacts | undefined> {
  refuseSparseEncoder(source);
  if (isClassifier(source.config)) return undefined;
  refuseOtherKind(source);
  return graphEncoderFacts(source);
}

/**
 * Plans the import of an exported ONNX graph, which is copied unchanged. Throws MODEL_INVALID, and CONFIG_INVALID for a precision other
 * than the graph's and a pooling other than the folder's or the graph's.
 */
export async function planOnnx(
  source: ImportSource,
  graphPath: string,
  precisions: readonly Precision[] | undefined,
): Promise<ModelPlan> {
  const { transformer, config } = source;
  const graph = await readOnnxFacts(graphPath);
  if (yesNoTemplate(source) !== undefined) {
    throw invalidModel(
      `${graphPath} is an exported graph of Qwen3-Reranker. Trawl makes its own graph of this model: add model.safetensors to the folder.`,
    );
  }
  const encoder = await checkGraphConfigs(source);
  checkInputs(graphPath, graph);
  const { precision } = graph;
  const other = precisions?.find((wanted) => wanted !== precision);
  if (other !== undefined) {
    throw invalidConfig(
      `${graphPath} has the precision ${precision}. ${other} can only be made from safetensors. Ask for ${precision}, or add ` +
        'model.safetensors to the folder.',
    );
  }
  const externalData = graph.externalData.map((path) => pathInside(graphPath, path));
  const dataPaths = externalData.map((path) => join(dirname(graphPath), path));
  const missing = dataPaths.find((path) => !existsSync(path));
  if (missing !== undefined) {
    throw invalidModel(`${missing} is missing: ${graphPath} refers to weights in it. Fetch it too.`);
  }
  const copies = [
    { from: graphPath, to: GRAPH_FILES[precision] },
    ...externalData.map((to, i) => ({ from: dataPaths[i]!, to })),
  ];
  const isCrossEncoder = isClassifier(config) && graph.outputs.includes('logits');
  const about = isCrossEncoder
    ? await aboutCrossEncoder(source)
    : aboutEncoder(source, encoder ?? (await graphEncoderFacts(source)), graphPath, graph);
  const { output, ...plan } = about;
  const vocabularySize = Number.isSafeInteger(config.vocab_size) ? (config.vocab_size as number) : undefined;
  return {
    ...plan,
    graphs: [{ precision, output, write }],
    writeTokenizer: await readSourceTokenizer(transformer, vocabularySize),
    weightFiles: [graphPath, ...dataPaths],
    close: async () => {},
  };

  async function write(target: string, { onProgress }: Parameters<ModelPlan['graphs'][number]['write']>[1]) {
    const sizes = await Promise.all(copies.map(async ({ from }) => (await stat(from)).size));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    let done = 0;
    for (const [i, { from, to }] of copies.entries()) {
      await mkdir(dirname(join(target, to)), { recursive: true });
      await copyFile(from, join(target, to));
      done += sizes[i]!;
      onProgress?.(done, total);
    }
    return { path: copies[0]!.to, externalData };
  }
}

type About = Omit<ModelPlan, 'graphs' | 'writeTokenizer' | 'weightFiles' | 'close'> & { readonly output: string };

async function aboutCrossEncoder(source: ImportSource): Promise<About> {
  refusePoolingOfPairs(source);
  const facts = await crossEncoderFacts(source, countLabels(source.config));
  return { kind: 'cross-encoder', ...facts, remarks: [], output: 'logits' };
}

function aboutEncoder(source: ImportSource, encoder: EncoderFacts, graphPath: string, { outputs }: OnnxFacts): About {
  const { facts, maxPositions, poolingFrom } = encoder;
  const output = OUTPUTS.find((name) => outputs.includes(name));
  if (output === undefined) {
    throw invalidModel(
      `${graphPath} has the outputs ${outputs.join(', ')}. Expected one of ${OUTPUTS.join(', ')}. Export the model for feature ` +
        'extraction.',
    );
  }
  const about = { kind: 'encoder', maxPositions, output } as const;
  if (output !== 'sentence_embedding') {
    return { ...about, facts, poolingFrom, remarks: poolingRemarks(encoder, source) };
  }
  if (source.pooling !== undefined) {
    throw otherPooling(source.pooling, `${graphPath} pools by itself: its output is sentence_embedding`);
  }
  const remarks = poolingRemarks({ ...encoder, poolingFrom: 'checkpoint' }, source);
  return { ...about, facts: { ...facts, pooling: 'none' }, poolingFrom: 'checkpoint', remarks };
}

function checkInputs(graphPath: string, { inputs }: OnnxFacts): void {
  const areKnown = inputs.every((input) => INPUTS.includes(input) || PAST_INPUT.test(input));
  if (areKnown && inputs.includes('input_ids')) return;
  throw invalidModel(
    `${graphPath} has the inputs ${inputs.join(', ')}. An encoder has input_ids and optionally ` +
      `${INPUTS.slice(1).join(', ')}, a decoder also past_key_values; this may be an encoder-decoder, which is not supported.`,
  );
}

function countLabels({ id2label, num_labels: count }: JsonObject): number {
  if (typeof id2label === 'object' && id2label !== null) return Object.keys(id2label).length;
  return Number.isSafeInteger(count) ? (count as number) : 2;
}

function pathInside(graphPath: string, path: string): string {
  if (!leadsOutside(path)) return normalize(path);
  throw invalidModel(`${graphPath} refers to weights in "${path}", which is outside its folder.`);
}
