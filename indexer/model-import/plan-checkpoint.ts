import { basename, join } from 'node:path';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import type { Int8Runner } from '../../src/encoder/inference/int8-runner.ts';
import type { StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import {
  type CheckpointFacts,
  crossEncoderFacts,
  encoderFacts,
  encoderRemarks,
  inTemplate,
} from './checkpoint-facts.ts';
import { type CheckedConfig, checkConfigs, isClassifier, notInBfloat16 } from './checkpoint-kind.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { type DenseModules, NO_MODULES, readDenseModules } from './dense-modules.ts';
import { enginePrecisions, engineWriterOf } from './engine-graphs.ts';
import { isTrunkOfLateInteraction } from './late-interaction.ts';
import type { ModelPlan, PlannedGraph } from './model-plan.ts';
import { bytesOfTensor, type OnnxGraph } from './onnx-graph.ts';
import { writeOnnx } from './onnx-writer.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';
import { answerIds } from './yes-no-reranker.ts';

export const GRAPH_FILES: Readonly<Record<Precision, string>> = {
  float32: 'model.onnx',
  int8: 'model-int8.onnx',
  float16: 'model-float16.onnx',
  bfloat16: 'model-bfloat16.bin',
};

/**
 * Plans the import of a safetensors checkpoint. Close the plan after use.
 *
 * @param names other names of the model, which help to recognise its family.
 * @throws TrawlError MODEL_INVALID, and the errors of `checkConfigs`.
 */
export async function planCheckpoint(
  folder: string,
  names: readonly string[],
  precisions: readonly Precision[],
  options: EncoderOptions,
): Promise<ModelPlan> {
  const config = await checkConfigs(folder, names, precisions, options.pooling);
  const weights = await CheckpointWeights.open(folder);
  const source = { ...config, folder, names, precisions, weights };
  try {
    const scores = config.reranker !== null || isClassifier(config.raw);
    return scores ? await planCrossEncoder(source) : await planEncoder(source, options);
  } catch (error) {
    await weights.close();
    throw error;
  }
}

interface EncoderOptions {
  readonly int8: Int8Runner | undefined;
  readonly pooling: StatedPooling | undefined;
}

interface Source extends CheckedConfig {
  readonly folder: string;
  readonly names: readonly string[];
  readonly precisions: readonly Precision[];
  readonly weights: CheckpointWeights;
}

async function planCrossEncoder(source: Source): Promise<ModelPlan> {
  const { folder, raw, configPath, architecture, reranker, weights, precisions } = source;
  // A conversion to …ForSequenceClassification has a head; else the score is that of the answer yes.
  const answers = reranker !== null && !isClassifier(raw) ? await answerIds(folder) : null;
  const scorer = architecture.crossEncoder!(weights, answers);
  const facts = await crossEncoderFacts(folder, raw, architecture, scorer.labels, configPath);
  if (precisions.includes('bfloat16')) throw notInBfloat16(configPath, 'a cross-encoder');
  const about =
    reranker === null
      ? { ...facts, pairTemplate: null }
      : { ...(await inTemplate(folder, facts)), pairTemplate: reranker.pairTemplate };
  return planOf(source, { kind: 'cross-encoder', ...about }, { makeGraph: scorer.graph, output: 'logits' });
}

async function planEncoder(source: Source, { int8, pooling }: EncoderOptions): Promise<ModelPlan> {
  const { folder, names, raw, configPath, architecture, weights, precisions } = source;
  const trunkAlone = await isTrunkOfLateInteraction(folder, raw, pooling);
  const { facts, ...others } = await encoderFacts(folder, names, architecture, { trunkAlone, pooling });
  const dense = trunkAlone ? NO_MODULES : await readDenseModules(folder, facts.pooling, facts.dimension);
  try {
    const { modules, dimension } = dense;
    if (precisions.includes('bfloat16')) {
      if (modules.length > 0) throw notInBfloat16(configPath, 'an encoder with Dense modules');
      if (facts.pooling === 'pooler') throw notInBfloat16(configPath, 'an encoder with the pooling "pooler"');
    }
    const { inEngine, remarks } = enginePrecisions(precisions, {
      engine: architecture.engine,
      hasModules: modules.length > 0,
      pooling: facts.pooling,
      int8,
    });
    // Refuses shapes before anything is written.
    for (const precision of inEngine) architecture.engine!.weights(weights, precision);
    const encoder = architecture.encoder(weights);
    return await planOf(
      source,
      { kind: 'encoder', pairTemplate: null, ...others, facts: dimension === null ? facts : { ...facts, dimension } },
      {
        makeGraph: (precision) => encoder(precision, modules),
        output: null,
        dense,
        inEngine,
        remarks: [...remarks, ...encoderRemarks({ ...others, facts }, raw, trunkAlone)],
      },
    );
  } catch (error) {
    await dense.close();
    throw error;
  }
}

interface PlannedGraphs {
  readonly makeGraph: (precision: Precision) => OnnxGraph;
  /** The output of the graphs; null: their only one. */
  readonly output: string | null;
  /** Modules after the encoder, which the plan closes. */
  readonly dense?: DenseModules;
  /** The precisions that the engine computes, without a graph. */
  readonly inEngine?: ReturnType<typeof enginePrecisions>['inEngine'];
  readonly remarks?: readonly string[];
}

async function planOf(
  { folder, precisions, architecture, weights }: Source,
  about: CheckpointFacts & Pick<ModelPlan, 'kind' | 'pairTemplate'>,
  { makeGraph, output, dense = NO_MODULES, inEngine = [], remarks = [] }: PlannedGraphs,
): Promise<ModelPlan> {
  return {
    ...about,
    remarks,
    graphs: precisions.map((precision) => {
      const own = inEngine.find((one) => one === precision);
      const write =
        own === undefined
          ? writerOf(GRAPH_FILES[precision], () => makeGraph(precision))
          : engineWriterOf(own, () => architecture.engine!.weights(weights, own));
      return { precision, output, write };
    }),
    // The text of a pair has its own end.
    writeTokenizer: await readSourceTokenizer(
      folder,
      architecture.vocabularySize,
      about.pairTemplate === null ? architecture.endToken : null,
    ),
    weightFiles: [...weights.files, ...dense.files],
    close: async () => {
      await dense.close();
      await weights.close();
    },
  };
}

function writerOf(name: string, make: () => OnnxGraph): PlannedGraph['write'] {
  return async (folder, { signal, onProgress }) => {
    const graph = make();
    const total = graph.tensors.reduce((sum, tensor) => sum + bytesOfTensor(tensor), 0);
    let done = 0;
    const onBytes = (bytes: number) => {
      done += bytes;
      onProgress?.(done, total);
    };
    const [path, ...externalData] = await writeOnnx(join(folder, name), graph, { signal, onBytes });
    return { path: basename(path!), externalData: externalData.map((file) => basename(file)) };
  };
}
