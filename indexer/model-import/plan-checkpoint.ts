import { basename, join } from 'node:path';
import type { Pooling, Precision } from '../../src/encoder/identity/model-identity.ts';
import { type Int8Runner, withoutEngineInt8 } from '../../src/encoder/inference/int8-runner.ts';
import type { EnginePrecision } from '../../src/engine/native/encoder-functions.ts';
import { crossEncoderFacts, type EncoderFacts, poolingRemarks } from './checkpoint-facts.ts';
import { type CheckedCheckpoint, checkCheckpoint, notInBfloat16 } from './checkpoint-kind.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { NO_MODULES, readDenseModules } from './dense-modules.ts';
import type { EnginePass } from './encoder-family.ts';
import type { ImportSource } from './import-source.ts';
import { isClassifier } from './model-kind.ts';
import type { ModelPlan, PlannedGraph } from './model-plan.ts';
import { type NativePart, nativeBytes, writeNative } from './native-weights.ts';
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
 * @param int8 what runs an encoder in int8. Default: the engine, if it is fast on this machine.
 * @throws TrawlError MODEL_INVALID, and the errors of `checkCheckpoint`.
 */
export async function planCheckpoint(
  source: ImportSource,
  precisions: readonly Precision[],
  int8: Int8Runner | undefined,
): Promise<ModelPlan> {
  const checked = await checkCheckpoint(source, precisions);
  const weights = await CheckpointWeights.open(source.transformer);
  const checkpoint = { ...checked, source, precisions, weights };
  const { encoder } = checked;
  try {
    return await (encoder === undefined ? planCrossEncoder(checkpoint) : planEncoder(checkpoint, encoder, int8));
  } catch (error) {
    await weights.close();
    throw error;
  }
}

interface Checkpoint extends CheckedCheckpoint {
  readonly source: ImportSource;
  readonly precisions: readonly Precision[];
  readonly weights: CheckpointWeights;
}

async function planCrossEncoder({
  source,
  architecture,
  pairTemplate,
  weights,
  precisions,
}: Checkpoint): Promise<ModelPlan> {
  const readsChat = pairTemplate !== undefined;
  // A conversion to …ForSequenceClassification has a head; else the answers' rows of the language model's head give the score.
  const answers = readsChat && !isClassifier(source.config) ? await answerIds(source.transformer) : undefined;
  const { labels, graph } = architecture.crossEncoder!(weights, answers);
  const facts = await crossEncoderFacts(source, labels, readsChat);
  if (precisions.includes('bfloat16')) throw notInBfloat16(source.configPath, 'a cross-encoder');
  // A chat has its own end.
  const endToken = readsChat ? undefined : architecture.endToken;
  return {
    kind: 'cross-encoder',
    ...facts,
    pairTemplate,
    remarks: [],
    graphs: precisions.map((precision) => ({
      precision,
      output: 'logits',
      write: graphWriter(precision, () => graph(precision)),
    })),
    writeTokenizer: await readSourceTokenizer(source.transformer, architecture.vocabularySize, endToken),
    weightFiles: weights.files,
    close: () => weights.close(),
  };
}

async function planEncoder(
  { source, architecture, weights, precisions }: Checkpoint,
  encoder: EncoderFacts,
  int8: Int8Runner | undefined,
): Promise<ModelPlan> {
  const { facts, maxPositions, poolingFrom, isTrunk } = encoder;
  const { folder, configPath } = source;
  const dense = isTrunk ? NO_MODULES : await readDenseModules(folder, facts.pooling, facts.dimension);
  try {
    const { modules, dimension } = dense;
    if (precisions.includes('bfloat16')) {
      if (modules.length > 0) throw notInBfloat16(configPath, 'an encoder with Dense modules');
      if (facts.pooling === 'pooler') throw notInBfloat16(configPath, 'an encoder with the pooling "pooler"');
    }
    const engine = modules.length === 0 ? architecture.engine : undefined;
    const { inEngine, remarks } = enginePrecisions(precisions, engine, facts.pooling, int8);
    // Refuses shapes before anything is written.
    for (const precision of inEngine) engine!.weights(weights, precision);
    const makeGraph = architecture.encoder(weights);
    return {
      kind: 'encoder',
      facts: { ...facts, dimension: dimension ?? facts.dimension },
      maxPositions,
      poolingFrom,
      remarks: [...remarks, ...poolingRemarks(encoder, source)],
      graphs: precisions.map((precision) => {
        const own = inEngine.find((one) => one === precision);
        const write =
          own === undefined
            ? graphWriter(precision, () => makeGraph(precision, modules))
            : engineWriter(own, () => engine!.weights(weights, own));
        return { precision, write };
      }),
      writeTokenizer: await readSourceTokenizer(source.transformer, architecture.vocabularySize, architecture.endToken),
      weightFiles: [...weights.files, ...dense.files],
      close: async () => {
        await dense.close();
        await weights.close();
      },
    };
  } catch (error) {
    await dense.close();
    throw error;
  }
}

/** Precisions of an encoder that the engine runs, and a remark if int8 is not among them for a reason of this machine. */
function enginePrecisions(
  precisions: readonly Precision[],
  engine: EnginePass | undefined,
  pooling: Pooling,
  int8: Int8Runner | undefined,
): { readonly inEngine: readonly EnginePrecision[]; readonly remarks: readonly string[] } {
  const hasPass = engine !== undefined && engine.refusal === undefined && pooling !== 'pooler';
  const reason = int8 === undefined && hasPass && precisions.includes('int8') ? withoutEngineInt8() : undefined;
  const takesInt8 = hasPass && int8 !== 'onnxruntime' && reason === undefined;
  return {
    inEngine: precisions.filter((one) => one === 'bfloat16' || (one === 'int8' && takesInt8)) as EnginePrecision[],
    remarks: reason === undefined ? [] : [`int8 is a graph for onnxruntime, because ${reason}`],
  };
}

function engineWriter(precision: EnginePrecision, make: () => readonly NativePart[]): PlannedGraph['write'] {
  return async (folder, { signal, onProgress }) => {
    const path = `model-${precision}.bin`;
    const parts = make();
    await writeNative(join(folder, path), parts, { signal, onBytes: counting(nativeBytes(parts), onProgress) });
    return { path, externalData: [] };
  };
}

function graphWriter(precision: Precision, make: () => OnnxGraph): PlannedGraph['write'] {
  return async (folder, { signal, onProgress }) => {
    const graph = make();
    const total = graph.tensors.reduce((sum, tensor) => sum + bytesOfTensor(tensor), 0);
    const files = await writeOnnx(join(folder, GRAPH_FILES[precision]), graph, {
      signal,
      onBytes: counting(total, onProgress),
    });
    const [path, ...externalData] = files.map((file) => basename(file));
    return { path: path!, externalData };
  };
}

/** Adds up the bytes of each call, and reports the sum. */
function counting(total: number, onProgress?: (done: number, total: number) => void): (bytes: number) => void {
  let done = 0;
  return (bytes) => {
    done += bytes;
    onProgress?.(done, total);
  };
}
